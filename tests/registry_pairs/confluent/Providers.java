import io.confluent.kafka.schemaregistry.CompatibilityLevel;
import io.confluent.kafka.schemaregistry.ParsedSchema;
import io.confluent.kafka.schemaregistry.SimpleParsedSchemaHolder;
import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.json.JsonSchema;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchema;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/**
 * The verdicts of Confluent's own parsers of all three formats, compiled from their sources: lines of TYPE OLD NEW LEVEL,
 * the schemas in base64, are answered by canonical form, normalized form and messages.
 */
public class Providers {
  static String decoded(String word) {
    return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
  }

  static String encoded(String text) {
    return "=" + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }

  static ParsedSchema parsed(String type, String text) {
    ParsedSchema schema =
        switch (type) {
          case "AVRO" -> new AvroSchema(text);
          case "JSON" -> new JsonSchema(text);
          default -> new ProtobufSchema(text);
        };
    schema.validate(false);
    return schema;
  }

  public static void main(String[] words) throws Exception {
    BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = asked.readLine()) != null; ) {
      String[] given = line.split(" ");
      List<String> told = new ArrayList<>();
      try {
        ParsedSchema before = parsed(given[0], decoded(given[1]));
        ParsedSchema schema = parsed(given[0], decoded(given[2]));
        told.add(schema.canonicalString());
        told.add(schema.normalize().canonicalString());
        told.addAll(schema.isCompatible(CompatibilityLevel.forName(given[3]), List.of(new SimpleParsedSchemaHolder(before))));
      } catch (Exception error) {
        told = List.of("fault", error.toString());
      }
      StringBuilder answer = new StringBuilder();
      for (String each : told) answer.append(encoded(each)).append(' ');
      System.out.println(answer.toString().trim());
    }
  }
}
