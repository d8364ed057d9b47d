import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.Config;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Confluent's client, then Apicurio's serializer and deserializer in Confluent's wire format, with a broker between them. */
public class Clients {
  static final String ORDER = record("Order", field("id", "\"long\"", ""));
  static final String WIDER = record("Order", field("id", "\"long\"", "") + "," + field("note", "\"string\"", ""));
  static final String NOTED = record("Order", field("id", "\"long\"", "") + "," + field("note", "\"string\"", ",\"default\":\"\""));

  static String record(String name, String fields) {
    return "{\"type\":\"record\",\"name\":\"" + name + "\",\"fields\":[" + fields + "]}";
  }

  static String field(String name, String type, String more) {
    return "{\"name\":\"" + name + "\",\"type\":" + type + more + "}";
  }

  static void check(boolean is, Object what) {
    if (!is) throw new AssertionError("not so: " + what);
  }

  interface Step {
    void run() throws Exception;
  }

  static void refused(int code, Step step) throws Exception {
    try {
      step.run();
    } catch (RestClientException error) {
      check(error.getErrorCode() == code, error);
      return;
    }
    throw new AssertionError("it was not refused by " + code);
  }

  static void confluent(String url) throws Exception {
    CachedSchemaRegistryClient client = new CachedSchemaRegistryClient(url, 100);
    int id = client.register("order-value", new AvroSchema(ORDER));
    check(client.getId("order-value", new AvroSchema(ORDER)) == id, id);
    client.reset();
    check(client.getSchemaById(id).canonicalString().equals(ORDER), client.getSchemaById(id));
    refused(409, () -> client.register("order-value", new AvroSchema(WIDER)));
    check(!client.testCompatibility("order-value", new AvroSchema(WIDER)), "it does not fit");
    List<String> why = client.testCompatibilityVerbose("order-value", new AvroSchema(WIDER));
    check(why.toString().contains("READER_FIELD_MISSING_DEFAULT_VALUE"), why);
    check(client.register("order-value", new AvroSchema(NOTED)) == id + 1, "the second");
    check(client.getAllVersions("order-value").equals(List.of(1, 2)), "versions");
    check(client.getLatestSchemaMetadata("order-value").getId() == id + 1, "latest");
    client.updateConfig("order-value", new Config("NONE"));
    check(client.getConfig("order-value").getCompatibilityLevel().equals("NONE"), "config");
    client.register("order-value", new AvroSchema(WIDER));
    String box = record("Box", field("order", "\"Order\"", ""));
    SchemaReference reference = new SchemaReference("Order", "order-value", 1);
    AvroSchema boxed = new AvroSchema(box, List.of(reference), Map.of("Order", ORDER), null);
    int boxId = client.register("box-value", boxed);
    client.reset();
    check(client.getSchemaById(boxId).references().equals(List.of(reference)), "references");
    check(client.getAllSubjectsById(boxId).contains("box-value"), "subjects of an id");
    check(client.setMode("READONLY", "box-value").equals("READONLY"), "mode");
    refused(42205, () -> client.deleteSubject("box-value", false));
    client.deleteMode("box-value");
    check(client.deleteSubject("box-value", false).equals(List.of(1)), "deletion");
    check(client.deleteSubject("box-value", true).equals(List.of(1)), "deletion for good");
    refused(40401, () -> client.getLatestSchemaMetadata("box-value"));
    check(client.getAllSubjects().equals(List.of("order-value")), client.getAllSubjects());
  }

  static void apicurio(String bootstrap, String url) {
    Map<String, Object> settings = Map.of(
        "bootstrap.servers", bootstrap, "apicurio.registry.url", url, "apicurio.registry.schema-resolver", Resolver.class.getName(),
        "apicurio.registry.as-confluent", true, "apicurio.registry.headers.enabled", false);
    AvroKafkaSerializer<GenericRecord> serializer = new AvroKafkaSerializer<>();
    AvroKafkaDeserializer<GenericRecord> deserializer = new AvroKafkaDeserializer<>();
    serializer.configure(settings, false);
    deserializer.configure(settings, false);
    GenericRecord tea = new GenericData.Record(new Schema.Parser().parse(record("Tea", field("cents", "\"int\"", ""))));
    tea.put("cents", 250);
    try (KafkaProducer<byte[], GenericRecord> producer =
        new KafkaProducer<>(settings, new org.apache.kafka.common.serialization.ByteArraySerializer(), serializer)) {
      producer.send(new ProducerRecord<>("teas", tea));
    }
    byte[] data = only(new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
    check(data[0] == 0 && data.length == 7, data.length);
    check(only(new KafkaConsumer<>(settings, new ByteArrayDeserializer(), deserializer)).get("cents").equals(250), "the record");
  }

  static <V> V only(KafkaConsumer<byte[], V> consumer) {
    try (consumer) {
      TopicPartition place = new TopicPartition("teas", 0);
      consumer.assign(List.of(place));
      consumer.seek(place, 0);
      for (;;) for (ConsumerRecord<byte[], V> row : consumer.poll(Duration.ofSeconds(1))) return row.value();
    }
  }

  public static void main(String[] words) throws Exception {
    confluent(words[1]);
    apicurio(words[0], words[1]);
  }
}
