import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writes the numbers from 0 on with an idempotent producer, five requests in flight: `java Sequence SERVERS TOPIC COUNT`. */
public final class Sequence {
    public static void main(String[] told) throws Exception {
        int count = Integer.parseInt(told[2]);
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", told[0]))) {
            admin.createTopics(List.of(new NewTopic(told[1], 1, (short) 1))).all().get();
        }
        Properties settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", told[0], "enable.idempotence", true, "acks", "all",
            "max.in.flight.requests.per.connection", 5, "linger.ms", 1, "batch.size", 5000,
            "reconnect.backoff.ms", 1, "reconnect.backoff.max.ms", 20, "retry.backoff.ms", 5,
            "delivery.timeout.ms", 300_000));
        AtomicReference<Exception> failed = new AtomicReference<>();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(told[1], String.format("%0100d", i).getBytes()),
                    (metadata, failure) -> failed.compareAndSet(null, failure));
            }
        }
        System.out.println(failed.get() == null ? "ok" : failed.get());
    }
}
