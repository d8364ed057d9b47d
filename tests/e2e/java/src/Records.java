import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Records go in and come out as they were, by every codec, and are found by offset and time. */
final class Records {
    private record Shape(byte[] key, byte[] value, List<Header> headers) {}

    private static final byte[] BIG = new byte[900_000];

    static {
        for (int i = 0; i < BIG.length; i++) {
            BIG[i] = (byte) (i * 31 + i / 256);
        }
    }

    private static final List<Shape> SHAPES = List.of(
        new Shape(bytes("plain"), bytes("value"), List.of()),
        new Shape(null, bytes("no key"), List.of()),
        new Shape(bytes("tombstone"), null, List.of()),
        new Shape(null, null, List.of()),
        new Shape(new byte[0], new byte[0], List.of()),
        new Shape(bytes("schlüssel"), bytes("größe €"), List.of(new RecordHeader("überschrift", bytes("größe")))),
        new Shape(bytes("headers"), bytes("many"), List.of(
            new RecordHeader("twice", bytes("1")), new RecordHeader("twice", bytes("2")),
            new RecordHeader("empty", new byte[0]), new RecordHeader("null", (byte[]) null))),
        new Shape(bytes("compressible"), bytes("momus ".repeat(4000)), List.of()));

    static void register() {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            Checks.ON_ONE.put("records-of-every-shape-come-back-as-sent-" + codec, (c, n) -> everyShape(c, n, codec));
        }
        for (String acks : List.of("0", "1", "all", "idempotent")) {
            Checks.ON_ONE.put("records-arrive-in-order-with-acks-" + acks, (c, n) -> inOrder(c, n, acks));
        }
        Checks.ON_ONE.put("record-of-900-kilobytes-comes-back-and-a-larger-one-is-refused", Records::bigRecord);
        Checks.ON_ONE.put("consumer-seeks-to-any-offset", Records::seek);
        Checks.ON_ONE.put("offsets-are-found-by-time", Records::offsetsForTimes);
        Checks.ON_ONE.put("records-appended-by-the-brokers-clock-bear-its-time", Records::logAppendTime);
        Checks.ON_ONE.put("producer-is-refused-where-it-may-not-write", Records::forbidden);
        Checks.ON_ONE.put("consumer-with-small-fetches-gets-every-record", Records::smallFetches);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static KafkaProducer<byte[], byte[]> producer(Checks.Cluster cluster, Object... settings) {
        Properties properties = cluster.with("max.block.ms", 120_000, "delivery.timeout.ms", 120_000, "linger.ms", 0,
            "request.timeout.ms", 60_000);
        properties.putAll(cluster.with(settings));
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(Checks.Cluster cluster, Object... settings) {
        Properties properties = cluster.with("auto.offset.reset", "earliest", "enable.auto.commit", "false");
        properties.putAll(cluster.with(settings));
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void create(Checks.Cluster cluster, String topic, int partitions, Map<String, String> configs)
            throws Exception {
        try (Admin admin = Admin.create(cluster.with())) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(configs))).all().get();
        }
    }

    /** The next `count` records of whatever the consumer reads. */
    static List<ConsumerRecord<byte[], byte[]>> read(KafkaConsumer<byte[], byte[]> consumer, int count)
            throws Exception {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        Checks.until(() -> {
            consumer.poll(Duration.ofMillis(100)).forEach(records::add);
            return records.size() >= count;
        }, count + " records");
        Checks.equal(count, records.size());
        return records;
    }

    private static void everyShape(Checks.Cluster cluster, String name, String codec) throws Exception {
        try (var producer = producer(cluster, "compression.type", codec, "linger.ms", 20)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (Shape shape : SHAPES) {
                long time = 1000 + sent.size();
                sent.add(producer.send(new ProducerRecord<>(name, 0, time, shape.key, shape.value, shape.headers)));
            }
            for (int i = 0; i < SHAPES.size(); i++) {
                Checks.equal((long) i, sent.get(i).get().offset());
            }
        }
        try (var consumer = consumer(cluster)) {
            consumer.assign(List.of(new TopicPartition(name, 0)));
            var records = read(consumer, SHAPES.size());
            for (int i = 0; i < SHAPES.size(); i++) {
                Checks.that(Arrays.equals(SHAPES.get(i).key, records.get(i).key()), "key " + i);
                Checks.that(Arrays.equals(SHAPES.get(i).value, records.get(i).value()), "value " + i);
                Checks.equal(SHAPES.get(i).headers, Arrays.asList(records.get(i).headers().toArray()));
                Checks.equal(1000L + i, records.get(i).timestamp());
            }
        }
    }

    private static void inOrder(Checks.Cluster cluster, String name, String acks) throws Exception {
        create(cluster, name, 1, Map.of());
        boolean idempotent = acks.equals("idempotent");
        try (var producer = producer(cluster, "batch.size", 200, "acks", idempotent ? "all" : acks,
                "enable.idempotence", idempotent)) {
            for (int i = 0; i < 200; i++) {
                producer.send(new ProducerRecord<>(name, bytes("" + i)));
            }
        }
        try (var consumer = consumer(cluster)) {
            consumer.assign(List.of(new TopicPartition(name, 0)));
            var values = read(consumer, 200).stream().map(r -> new String(r.value())).toList();
            Checks.equal(IntStream.range(0, 200).mapToObj(Integer::toString).toList(), values);
        }
    }

    private static void bigRecord(Checks.Cluster cluster, String name) throws Exception {
        try (var producer = producer(cluster, "max.request.size", 10_000_000)) {
            producer.send(new ProducerRecord<>(name, BIG)).get();
            Checks.equal(RecordTooLargeException.class,
                Checks.refusal(() -> producer.send(new ProducerRecord<>(name, new byte[2_000_000])).get()));
            producer.send(new ProducerRecord<>(name, bytes("after"))).get();
        }
        try (var consumer = consumer(cluster)) {
            consumer.assign(List.of(new TopicPartition(name, 0)));
            var records = read(consumer, 2);
            Checks.that(Arrays.equals(BIG, records.get(0).value()), "the big record");
            Checks.equal("after", new String(records.get(1).value()));
        }
    }

    private static void seek(Checks.Cluster cluster, String name) throws Exception {
        try (var producer = producer(cluster)) {
            for (int i = 0; i < 50; i++) {
                producer.send(new ProducerRecord<>(name, bytes("" + i))).get(); // a batch each
            }
        }
        TopicPartition partition = new TopicPartition(name, 0);
        try (var consumer = consumer(cluster)) {
            consumer.assign(List.of(partition));
            Checks.equal(Map.of(partition, 0L), consumer.beginningOffsets(List.of(partition)));
            Checks.equal(Map.of(partition, 50L), consumer.endOffsets(List.of(partition)));
            consumer.seek(partition, 43);
            Checks.equal(43L, read(consumer, 7).get(0).offset());
            Checks.equal(50L, consumer.position(partition));
            consumer.seekToBeginning(List.of(partition));
            Checks.equal(0L, read(consumer, 50).get(0).offset());
            consumer.seek(partition, 1000); // out of range: reset to the earliest
            Checks.equal(0L, read(consumer, 50).get(0).offset());
            consumer.seekToEnd(List.of(partition));
            Checks.equal(50L, consumer.position(partition));
            Checks.equal(0L, consumer.currentLag(partition).orElse(0));
            Checks.equal(1, consumer.partitionsFor(name).size());
            Checks.that(consumer.listTopics().containsKey(name), "the topic is listed");
        }
    }

    private static void offsetsForTimes(Checks.Cluster cluster, String name) throws Exception {
        long start = 1_700_000_000_000L;
        try (var producer = producer(cluster)) {
            for (int i = 0; i < 20; i++) {
                producer.send(new ProducerRecord<>(name, 0, start + 1000 * i, null, bytes("" + i))).get();
            }
        }
        TopicPartition partition = new TopicPartition(name, 0);
        try (var consumer = consumer(cluster)) {
            for (long[] asked : new long[][] {{0, 0}, {start + 4500, 5}, {start + 19_000, 19}}) {
                OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, asked[0])).get(partition);
                Checks.equal(asked[1], found.offset());
                Checks.equal(start + 1000 * asked[1], found.timestamp());
            }
            Checks.equal(null, consumer.offsetsForTimes(Map.of(partition, start + 20_000)).get(partition));
        }
    }

    private static void logAppendTime(Checks.Cluster cluster, String name) throws Exception {
        create(cluster, name, 1, Map.of("message.timestamp.type", "LogAppendTime"));
        try (var producer = producer(cluster, "compression.type", "lz4"); var consumer = consumer(cluster)) {
            long stamped = producer.send(new ProducerRecord<>(name, 0, 1L, null, bytes("old"))).get().timestamp();
            Checks.that(stamped > 1_700_000_000_000L, "the broker's clock");
            consumer.assign(List.of(new TopicPartition(name, 0)));
            var record = read(consumer, 1).get(0);
            Checks.equal(stamped, record.timestamp());
            Checks.equal(TimestampType.LOG_APPEND_TIME, record.timestampType());
        }
    }

    private static void forbidden(Checks.Cluster cluster, String name) throws Exception {
        create(cluster, name, 1, Map.of("cleanup.policy", "compact"));
        Groups.commit(cluster, name, name, 1); // makes the offsets topic
        try (var producer = producer(cluster, "enable.idempotence", false, "retries", 0)) {
            Checks.equal("InvalidRecordException", Checks.refusal(
                () -> producer.send(new ProducerRecord<>(name, bytes("a compacted topic wants keys"))).get())
                .getSimpleName());
            Checks.equal(InvalidTopicException.class, Checks.refusal(
                () -> producer.send(new ProducerRecord<>("__consumer_offsets", 0, null, bytes("forged"))).get()));
            Checks.equal(InvalidTopicException.class, Checks.refusal(
                () -> producer.send(new ProducerRecord<>("a b", bytes("x"))).get()));
            producer.send(new ProducerRecord<>(name, bytes("key"), bytes("value"))).get();
        }
    }

    private static void smallFetches(Checks.Cluster cluster, String name) throws Exception {
        create(cluster, name, 3, Map.of());
        try (var producer = producer(cluster, "batch.size", 2000)) {
            for (int i = 0; i < 60; i++) {
                producer.send(new ProducerRecord<>(name, i % 3, null, new byte[5000]));
            }
        }
        try (var consumer = consumer(cluster, "max.partition.fetch.bytes", 1, "fetch.max.bytes", 1)) {
            consumer.assign(IntStream.range(0, 3).mapToObj(p -> new TopicPartition(name, p)).toList());
            read(consumer, 60);
        }
    }
}
