import io.apicurio.registry.resolver.ParsedSchema;
import io.apicurio.registry.resolver.ParsedSchemaImpl;
import io.apicurio.registry.resolver.SchemaLookupResult;
import io.apicurio.registry.resolver.SchemaParser;
import io.apicurio.registry.resolver.SchemaResolver;
import io.apicurio.registry.resolver.data.Record;
import io.apicurio.registry.resolver.strategy.ArtifactReference;
import io.apicurio.registry.resolver.strategy.ArtifactReferenceResolverStrategy;
import io.apicurio.registry.rest.client.RegistryClient;
import io.apicurio.registry.serde.data.KafkaSerdeMetadata;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;

/** Finds schemas for Apicurio's serdes by Confluent's client: by themselves they know Apicurio's own API alone. */
public class Resolver<S, D> implements SchemaResolver<S, D> {
  private SchemaParser<S, D> parser;
  private CachedSchemaRegistryClient client;

  @Override
  public void configure(Map<String, ?> settings, SchemaParser<S, D> parser) {
    this.parser = parser;
    client = new CachedSchemaRegistryClient((String) settings.get("apicurio.registry.url"), 100);
  }

  @Override
  public void setClient(RegistryClient client) {}

  @Override
  public void setArtifactResolverStrategy(ArtifactReferenceResolverStrategy<S, D> strategy) {}

  @Override
  public SchemaParser<S, D> getSchemaParser() {
    return parser;
  }

  @Override
  public SchemaLookupResult<S> resolveSchema(Record<D> record) {
    KafkaSerdeMetadata place = (KafkaSerdeMetadata) record.metadata();
    ParsedSchema<S> schema = parser.getSchemaFromData(record);
    String subject = place.getTopic() + (place.isKey() ? "-key" : "-value");
    try {
      String text = new String(schema.getRawSchema(), StandardCharsets.UTF_8);
      return found(client.register(subject, new AvroSchema(text)), subject, schema);
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  @Override
  public SchemaLookupResult<S> resolveSchemaByArtifactReference(ArtifactReference reference) {
    Long named = reference.getContentId() == null ? reference.getGlobalId() : reference.getContentId();
    try {
      byte[] text = client.getSchemaById(named.intValue()).canonicalString().getBytes(StandardCharsets.UTF_8);
      ParsedSchemaImpl<S> schema = new ParsedSchemaImpl<S>().setParsedSchema(parser.parseSchema(text, Map.of()));
      return found(named.intValue(), "", schema.setRawSchema(text));
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  private SchemaLookupResult<S> found(int id, String subject, ParsedSchema<S> schema) {
    return SchemaLookupResult.<S>builder().parsedSchema(schema).globalId(id).contentId(id).artifactId(subject).version("").build();
  }

  @Override
  public void reset() {
    client.reset();
  }

  @Override
  public void close() {}
}
