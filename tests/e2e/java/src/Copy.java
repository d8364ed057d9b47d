import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Copies records in transactions, one consumer of a group and one transactional producer, until somebody kills it:
 * `java Copy SERVERS SOURCE TARGET GROUP NUMBER WORKERS PARTITIONS PROTOCOL`. One letter for each step of a
 * transaction goes to standard output, as copy_kit.py has them.
 */
public final class Copy {
    private static final int FENCED = 3;

    private static void tell(char step) {
        System.out.write(step);
        System.out.flush();
    }

    private static void dwell() throws InterruptedException {
        Thread.sleep(ThreadLocalRandom.current().nextInt(20));
    }

    private static byte[] transformed(byte[] value) {
        byte[] made = new byte[value.length];
        for (int i = 0; i < value.length; i++) {
            made[i] = value[value.length - 1 - i];
        }
        return made;
    }

    public static void main(String[] told) throws Exception {
        Properties consuming = new Properties();
        consuming.putAll(Map.of("bootstrap.servers", told[0], "client.id", "copier-" + told[4], "group.id", told[3], "group.protocol", told[7],
            "isolation.level", "read_committed", "enable.auto.commit", "false", "auto.offset.reset", "earliest",
            "max.poll.records", 100));
        if (told[7].equals("classic")) {
            consuming.putAll(Map.of("session.timeout.ms", 2000, "heartbeat.interval.ms", 300));
        }
        Properties producing = new Properties();
        producing.putAll(Map.of("bootstrap.servers", told[0], "transactional.id", told[3] + "-" + told[4],
            "retry.backoff.ms", 20, "reconnect.backoff.max.ms", 200));
        try {
            var producer = new KafkaProducer<>(producing, new ByteArraySerializer(), new ByteArraySerializer());
            producer.initTransactions();
            var consumer = new KafkaConsumer<>(consuming, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(List.of(told[1]));
            while (true) {
                copy(consumer, producer, told[1], told[2]);
            }
        } catch (KafkaException failure) {
            // the next process with this transactional id ends what is open and begins where that began
            System.err.println("ended: " + failure);
            Runtime.getRuntime().halt(FENCED); // at once: closing would wait for the transaction
        }
    }

    private static void copy(KafkaConsumer<byte[], byte[]> consumer, KafkaProducer<byte[], byte[]> producer,
            String source, String target) throws InterruptedException {
        var records = consumer.poll(Duration.ofMillis(100));
        if (records.isEmpty()) {
            return;
        }
        var group = consumer.groupMetadata();
        producer.beginTransaction();
        tell('b');
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        records.forEach(record -> {
            producer.send(new ProducerRecord<>(target, record.partition(), null, transformed(record.value())));
            offsets.put(new TopicPartition(source, record.partition()), new OffsetAndMetadata(record.offset() + 1));
        });
        producer.flush();
        dwell();
        producer.sendOffsetsToTransaction(offsets, group);
        tell('o');
        dwell();
        tell('e');
        producer.commitTransaction();
        tell('.');
    }
}
