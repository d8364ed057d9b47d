import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;

/**
 * What tests/e2e/make_kafka_audit_logs.py has Kafka's own clients do: `java GoldenLogs SERVERS WHAT`.
 */
public final class GoldenLogs {
    private static final Duration POLL = Duration.ofMillis(200);
    private static String servers;

    public static void main(String[] told) throws Exception {
        servers = told[0];
        switch (told[1]) {
            case "modern" -> modern();
            case "before" -> before();
            case "compacted" -> compacted();
            default -> throw new IllegalArgumentException(told[1]);
        }
    }

    /** Groups of every protocol, transactions that commit, abort and move offsets, an application of Kafka Streams. */
    private static void modern() throws Exception {
        topics(Map.of("orders", 2, "copies", 2, "streamed", 1));
        fill("orders", 40, 2);
        read("classic", "classic", "orders", 40);
        read("modern", "consumer", "orders", 40);
        copy("copier", "consumer", "orders", "copies");
        stream("streaming", "orders", "streamed", 40);
    }

    /** The same by transactions from before KIP-890, in a cluster with transaction.version=0. */
    private static void before() throws Exception {
        topics(Map.of("orders", 1, "copies", 1));
        fill("orders", 20, 1);
        read("classic", "classic", "orders", 20);
        copy("copier", "classic", "orders", "copies");
    }

    /** Values of few keys, again and again, by an idempotent and by a transactional producer. */
    private static void compacted() throws Exception {
        try (var admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            var configs = Map.of("cleanup.policy", "compact", "segment.bytes", "1048576", "segment.ms", "500",
                "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "0");
            admin.createTopics(List.of(new NewTopic("latest", 1, (short) 1).configs(configs))).all().get();
        }
        try (var plain = producer(null); var bound = producer("keeper")) {
            bound.initTransactions();
            for (int round = 0; round < 12; round++) {
                for (int key = 0; key < 4; key++) {
                    plain.send(new ProducerRecord<>("latest", "plain " + key, "value " + round)).get();
                }
                bound.beginTransaction();
                bound.send(new ProducerRecord<>("latest", "bound", "value " + round)).get();
                if (round % 3 == 1) {
                    bound.abortTransaction();
                } else {
                    bound.commitTransaction();
                }
                Thread.sleep(600); // the segment is rolled with the next record
            }
        }
    }

    private static void topics(Map<String, Integer> partitions) throws Exception {
        try (var admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            admin.createTopics(partitions.entrySet().stream()
                .map(each -> new NewTopic(each.getKey(), each.getValue(), (short) 1)).toList()).all().get();
        }
    }

    private static KafkaProducer<String, String> producer(String transactionalId) {
        var settings = new Properties();
        settings.put("bootstrap.servers", servers);
        if (transactionalId != null) {
            settings.put("transactional.id", transactionalId);
        }
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String group, String protocol) {
        var settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", servers, "group.id", group, "group.protocol", protocol,
            "enable.auto.commit", "false", "auto.offset.reset", "earliest", "max.poll.records", 10,
            "isolation.level", "read_committed"));
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private static void fill(String topic, int count, int partitions) throws Exception {
        try (var producer = producer(null)) {
            for (int n = 0; n < count; n++) {
                producer.send(new ProducerRecord<>(topic, n % partitions, "key " + n, "value " + n));
                if (n % 5 == 4) {
                    producer.flush();
                }
            }
        }
    }

    private static void read(String group, String protocol, String topic, int count) {
        try (var consumer = consumer(group, protocol)) {
            consumer.subscribe(List.of(topic));
            for (int seen = 0; seen < count;) {
                var records = consumer.poll(POLL);
                seen += records.count();
                if (!records.isEmpty()) {
                    consumer.commitSync();
                }
            }
        }
    }

    /** Every third transaction is aborted, and its records are read again. */
    private static void copy(String group, String protocol, String source, String target) {
        try (var consumer = consumer(group, protocol); var producer = producer(group)) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            int transactions = 0;
            for (int empty = 0; empty < 10;) {
                var records = consumer.poll(POLL);
                if (records.isEmpty()) {
                    empty += transactions > 0 ? 1 : 0;
                    continue;
                }
                empty = 0;
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                producer.beginTransaction();
                records.forEach(record -> {
                    producer.send(new ProducerRecord<>(target, record.partition(), record.key(), record.value()));
                    offsets.put(new TopicPartition(source, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                });
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (transactions++ % 3 == 1) {
                    producer.abortTransaction();
                    for (TopicPartition partition : records.partitions()) {
                        consumer.seek(partition, records.records(partition).get(0).offset());
                    }
                } else {
                    producer.commitTransaction();
                }
            }
        }
    }

    private static void stream(String name, String source, String target, int count) throws Exception {
        var builder = new StreamsBuilder();
        builder.<String, String>stream(source).mapValues(value -> value + " streamed").to(target);
        var settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", servers, "application.id", name, "group.protocol", "streams",
            "processing.guarantee", "exactly_once_v2", "commit.interval.ms", 200, "num.stream.threads", 1,
            "default.key.serde", Serdes.StringSerde.class, "default.value.serde", Serdes.StringSerde.class,
            "state.dir", System.getProperty("java.io.tmpdir") + "/streams-state"));
        try (var streams = new KafkaStreams(builder.build(), settings);
             var consumer = consumer("watcher", "consumer")) {
            streams.start();
            consumer.assign(Set.of(new TopicPartition(target, 0)));
            consumer.seekToBeginning(consumer.assignment());
            for (int seen = 0; seen < count;) {
                seen += consumer.poll(POLL).count();
            }
        }
    }
}
