import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.CompatibilityLevel;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.ParsedSchemaHolder;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.SimpleParsedSchemaHolder;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchema;

/** Confluent's verdicts on Avro: lines of OLD NEW LEVEL, in base64, are answered by canonical, normalized and messages. */
public class Referee {
  static String decoded(String word) {
    return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
  }

  static String encoded(String text) {
    return "=" + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }

  public static void main(String[] words) throws Exception {
    BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = asked.readLine()) != null; ) {
      String[] given = line.split(" ");
      List<String> told = new ArrayList<>();
      try {
        AvroSchema schema = new AvroSchema(decoded(given[1]));
        List<ParsedSchemaHolder> before = List.of(new SimpleParsedSchemaHolder(new AvroSchema(decoded(given[0]))));
        told.add(schema.canonicalString());
        told.add(schema.normalize().canonicalString());
        told.addAll(schema.isCompatible(CompatibilityLevel.forName(given[2]), before));
      } catch (Exception error) {
        told = List.of("fault", error.toString());
      }
      StringBuilder answer = new StringBuilder();
      for (String each : told) answer.append(encoded(each)).append(' ');
      System.out.println(answer.toString().trim());
    }
  }
}
