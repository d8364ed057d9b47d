import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writes the numbers from 0 on with a producer of default settings: `java Flood SERVERS TOPIC COUNT [KEY=VALUE ...]`. */
public final class Flood {
    public static void main(String[] told) throws Exception {
        int count = Integer.parseInt(told[2]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", told[0]);
        for (int i = 3; i < told.length; i++) {
            String[] pair = told[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        AtomicReference<Exception> failed = new AtomicReference<>();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(told[1], String.format("%016d", i).getBytes()),
                    (metadata, failure) -> failed.compareAndSet(null, failure));
            }
        }
        System.out.println(failed.get() == null ? "ok" : failed.get());
    }
}
