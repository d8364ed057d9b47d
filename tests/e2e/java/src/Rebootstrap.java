import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends one record each time a line comes in, all by one producer, and says at which offset it is: `java Rebootstrap SERVERS`. */
public final class Rebootstrap {
    public static void main(String[] told) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", told[0]);
        settings.put("reconnect.backoff.ms", 0);  // while its one node backs off it would begin again by itself
        settings.put("reconnect.backoff.max.ms", 0);
        settings.put("retry.backoff.ms", 5);
        var lines = new BufferedReader(new InputStreamReader(System.in));
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            while (lines.readLine() != null) {
                try {
                    System.out.println(producer.send(new ProducerRecord<>("t", "v")).get().offset());
                } catch (ExecutionException failure) {
                    System.out.println(failure.getCause());
                }
            }
        }
    }
}
