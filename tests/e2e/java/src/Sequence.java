import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes the numbers from 0 on with an idempotent producer, five requests in flight: `java Sequence SERVERS TOPIC COUNT`.
 * Prints "ok", and how many records it was told another offset of than the number itself.
 */
public final class Sequence {
    public static void main(String[] told) throws Exception {
        int count = Integer.parseInt(told[2]);
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", told[0]))) {
            admin.createTopics(List.of(new NewTopic(told[1], 1, (short) 1))).all().get();
        } catch (ExecutionException failure) {  // a reply was lost, and the client has asked again
            if (!(failure.getCause() instanceof TopicExistsException)) {
                throw failure;
            }
        }
        Properties settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", told[0], "enable.idempotence", true, "acks", "all",
            "max.in.flight.requests.per.connection", 5, "linger.ms", 1, "batch.size", 5000,
            "reconnect.backoff.ms", 1, "reconnect.backoff.max.ms", 20, "retry.backoff.ms", 5,
            "delivery.timeout.ms", 300_000));
        AtomicReference<Exception> failed = new AtomicReference<>();
        AtomicInteger wrong = new AtomicInteger();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < count; i++) {
                int number = i;
                producer.send(new ProducerRecord<>(told[1], String.format("%0100d", i).getBytes()),
                    (metadata, failure) -> {
                        failed.compareAndSet(null, failure);
                        if (failure == null && metadata.offset() != number) {
                            wrong.incrementAndGet();
                        }
                    });
            }
        }
        System.out.println(failed.get() == null ? "ok " + wrong.get() : failed.get());
    }
}
