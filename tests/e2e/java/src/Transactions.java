import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Transactions count as a whole or not at all, offsets go with the records, and whoever was replaced is told so. */
final class Transactions {
    static void register() {
        Checks.ON_ONE.put("reader-of-committed-sees-what-was-committed", Transactions::readCommitted);
        Checks.ON_ONE.put("open-transaction-hides-what-follows-it", Transactions::openHides);
        Checks.ON_ONE.put("producer-may-have-a-transaction-behind-another-at-once", Transactions::oneBehindTheOther);
        for (String protocol : List.of("classic", "consumer")) {
            Checks.ON_ONE.put("each-record-is-copied-once-" + protocol, (c, n) -> copy(c, n, protocol));
            Checks.ON_ONE.put("consumer-of-an-older-generation-cannot-send-offsets-" + protocol,
                (c, n) -> olderGeneration(c, n, protocol));
            Checks.ON_ONE.put("consumer-that-left-cannot-send-offsets-" + protocol, (c, n) -> gone(c, n, protocol));
        }
        Checks.ON_THREE.put("each-record-is-copied-once-on-three-brokers", (c, n) -> copy(c, n, "classic"));
        Checks.ON_ONE.put("consumer-with-a-double-cannot-send-offsets", Transactions::doubled);
        Checks.ON_ONE.put("producer-that-was-replaced-is-fenced-at-its-commit", Transactions::fencedAtCommit);
        Checks.ON_ONE.put("producer-that-was-replaced-is-fenced-at-its-next-record", Transactions::fencedAtSend);
        Checks.ON_ONE.put("producer-that-was-replaced-is-fenced-at-its-offsets", Transactions::fencedAtOffsets);
        Checks.ON_ONE.put("producer-that-an-admin-fenced-is-fenced", Transactions::fencedByAdmin);
        Checks.ON_ONE.put("producer-whose-time-was-up-is-told-and-may-go-on", Transactions::timedOut);
        Checks.ON_ONE.put("transaction-whose-time-was-up-cannot-be-committed", Transactions::committedTooLate);
    }

    private static KafkaProducer<byte[], byte[]> producer(Checks.Cluster cluster, String id, Object... settings) {
        Object[] all = new Object[settings.length + 2];
        System.arraycopy(settings, 0, all, 2, settings.length);
        all[0] = "transactional.id"; all[1] = id;
        var made = Records.producer(cluster, all);
        made.initTransactions();
        return made;
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, String... values) {
        for (String value : values) {
            producer.send(new ProducerRecord<>(topic, 0, null, Records.bytes(value)));
        }
    }

    private static KafkaConsumer<byte[], byte[]> reader(Checks.Cluster cluster, String isolation, String topic, int n) {
        var made = Records.consumer(cluster, "isolation.level", isolation);
        made.assign(IntStream.range(0, n).mapToObj(partition -> new TopicPartition(topic, partition)).toList());
        return made;
    }

    private static List<String> values(List<ConsumerRecord<byte[], byte[]>> records) {
        return records.stream().map(record -> new String(record.value())).toList();
    }

    /** The values a new consumer reads: as many as these, and nothing behind them. */
    private static void sees(Checks.Cluster cluster, String topic, String isolation, String... values)
            throws Exception {
        try (var reader = reader(cluster, isolation, topic, 1)) {
            Checks.equal(List.of(values), values(Records.read(reader, values.length)));
            Checks.equal(0, reader.poll(Duration.ofMillis(300)).count());
        }
    }

    private static void readCommitted(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 1, Map.of());
        try (var producer = producer(cluster, name)) {
            for (int i = 0; i < 4; i++) {
                producer.beginTransaction();
                send(producer, name, i + "-a", i + "-b");
                if (i % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.flush();
                    producer.abortTransaction();
                }
            }
        }
        sees(cluster, name, "read_committed", "0-a", "0-b", "2-a", "2-b");
        sees(cluster, name, "read_uncommitted", "0-a", "0-b", "1-a", "1-b", "2-a", "2-b", "3-a", "3-b");
    }

    private static void openHides(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 1, Map.of());
        TopicPartition partition = new TopicPartition(name, 0);
        try (var first = producer(cluster, name + "-1"); var second = producer(cluster, name + "-2");
                var reader = reader(cluster, "read_committed", name, 1)) {
            first.beginTransaction();
            send(first, name, "first");
            first.flush();
            second.beginTransaction();
            send(second, name, "second");
            second.commitTransaction();
            Checks.equal(0, reader.poll(Duration.ofMillis(500)).count());
            Checks.equal(Map.of(partition, 0L), reader.endOffsets(List.of(partition))); // the last stable offset
            first.commitTransaction();
            Checks.equal(List.of("first", "second"), values(Records.read(reader, 2)));
        }
    }

    private static void oneBehindTheOther(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 1, Map.of());
        List<String> expected = new ArrayList<>();
        try (var producer = producer(cluster, name)) {
            for (int i = 0; i < 100; i++) {
                producer.beginTransaction();
                send(producer, name, "" + i);
                producer.commitTransaction();
                expected.add("" + i);
            }
        }
        sees(cluster, name, "read_committed", expected.toArray(new String[0]));
    }

    private static Object[] member(String group, String protocol) {
        return protocol.equals("consumer")
            ? new Object[] {"group.id", group, "group.protocol", protocol, "isolation.level", "read_committed",
                "max.poll.records", 20}
            : new Object[] {"group.id", group, "isolation.level", "read_committed", "max.poll.records", 20,
                "heartbeat.interval.ms", 100, "session.timeout.ms", 30_000};
    }

    /** Every third transaction is aborted and done again. */
    private static void copy(Checks.Cluster cluster, String name, String protocol) throws Exception {
        String source = name + "-in";
        String target = name + "-out";
        int total = 300;
        Records.create(cluster, source, 3, Map.of());
        Records.create(cluster, target, 3, Map.of());
        try (var producer = Records.producer(cluster)) {
            for (int i = 0; i < total; i++) {
                producer.send(new ProducerRecord<>(source, i % 3, null, Records.bytes("" + i)));
            }
        }
        try (var consumer = Records.consumer(cluster, member(name, protocol)); var producer = producer(cluster, name)) {
            consumer.subscribe(List.of(source));
            int[] state = {0, 0}; // copied, transactions
            Checks.until(() -> {
                var records = consumer.poll(Duration.ofMillis(100));
                if (records.isEmpty()) {
                    return false;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                records.forEach(record -> {
                    producer.send(new ProducerRecord<>(target, record.partition(), null, record.value()));
                    offsets.put(new TopicPartition(source, record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                });
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (++state[1] % 3 == 0) {
                    producer.abortTransaction();
                    consumer.committed(offsets.keySet()).forEach((partition, committed) ->
                        consumer.seek(partition, committed == null ? 0 : committed.offset()));
                } else {
                    producer.commitTransaction();
                    state[0] += records.count();
                }
                return state[0] >= total;
            }, "everything is copied");
        }
        try (var reader = reader(cluster, "read_committed", target, 3)) {
            var records = Records.read(reader, total);
            for (int p = 0; p < 3; p++) {
                int partition = p;
                Checks.equal(IntStream.range(0, total).filter(i -> i % 3 == partition).mapToObj(i -> "" + i).toList(),
                    values(records.stream().filter(record -> record.partition() == partition).toList()));
            }
            Checks.equal(0, reader.poll(Duration.ofMillis(300)).count());
        }
        Checks.equal(Map.of(0, 100L, 1, 100L, 2, 100L), Groups.committed(cluster, name));
    }

    private static ConsumerGroupMetadata joined(KafkaConsumer<byte[], byte[]> consumer, String topic)
            throws Exception {
        consumer.subscribe(List.of(topic));
        Checks.until(() -> {
            consumer.poll(Duration.ofMillis(50));
            return !consumer.assignment().isEmpty();
        }, "the group has a member");
        return consumer.groupMetadata();
    }

    /** A transaction whose offsets are refused is aborted, and none of its offsets count. */
    private static void refused(Checks.Cluster cluster, String name, ConsumerGroupMetadata zombie, Class<?> why)
            throws Exception {
        try (var producer = producer(cluster, name)) {
            producer.beginTransaction();
            send(producer, name, "of the zombie");
            Checks.equal(why, Checks.refusal(() -> {
                producer.sendOffsetsToTransaction(Map.of(new TopicPartition(name, 0), new OffsetAndMetadata(1)), zombie);
                return null;
            }));
            producer.abortTransaction();
        }
        Checks.equal(Map.of(), Groups.committed(cluster, name));
    }

    private static void olderGeneration(Checks.Cluster cluster, String name, String protocol) throws Exception {
        Records.create(cluster, name, 2, Map.of());
        try (var consumer = Records.consumer(cluster, member(name, protocol));
                var other = Records.consumer(cluster, member(name, protocol))) {
            ConsumerGroupMetadata zombie = joined(consumer, name);
            other.subscribe(List.of(name));
            Checks.until(() -> {
                consumer.poll(Duration.ofMillis(50));
                other.poll(Duration.ofMillis(50));
                return consumer.assignment().size() == 1 && other.assignment().size() == 1
                    && consumer.groupMetadata().generationId() != zombie.generationId();
            }, "both have a share");
            // with assignment epochs a member keeps its right to what it kept; to what it gave away it has none
            int lost = consumer.assignment().iterator().next().partition() == 0 ? 1 : 0;
            try (var producer = producer(cluster, name)) {
                producer.beginTransaction();
                Checks.equal(CommitFailedException.class, Checks.refusal(() -> {
                    producer.sendOffsetsToTransaction(
                        Map.of(new TopicPartition(name, lost), new OffsetAndMetadata(1)), zombie);
                    return null;
                }));
                producer.abortTransaction();
            }
        }
        Checks.equal(Map.of(), Groups.committed(cluster, name));
    }

    private static void gone(Checks.Cluster cluster, String name, String protocol) throws Exception {
        Records.create(cluster, name, 1, Map.of());
        ConsumerGroupMetadata zombie;
        try (var consumer = Records.consumer(cluster, member(name, protocol))) {
            zombie = joined(consumer, name);
        }
        refused(cluster, name, zombie, CommitFailedException.class);
    }

    private static void doubled(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 1, Map.of());
        Object[] settings = {"group.id", name, "group.instance.id", "only", "session.timeout.ms", 30_000};
        try (var consumer = Records.consumer(cluster, settings); var other = Records.consumer(cluster, settings)) {
            ConsumerGroupMetadata zombie = joined(consumer, name);
            joined(other, name);
            refused(cluster, name, zombie, FencedInstanceIdException.class);
        }
    }

    private static void fencedAtCommit(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 1, Map.of());
        try (var zombie = producer(cluster, name)) {
            zombie.beginTransaction();
            send(zombie, name, "of the zombie");
            zombie.flush();
            try (var successor = producer(cluster, name)) {
                Checks.equal(ProducerFencedException.class, Checks.refusal(() -> {
                    zombie.commitTransaction();
                    return null;
                }));
                successor.beginTransaction();
                send(successor, name, "of the successor");
                successor.commitTransaction();
            }
        }
        sees(cluster, name, "read_committed", "of the successor");
    }

    private static void fencedAtSend(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 1, Map.of());
        try (var zombie = producer(cluster, name)) {
            zombie.beginTransaction();
            send(zombie, name, "of the zombie");
            zombie.flush();
            try (var successor = producer(cluster, name)) {
                successor.beginTransaction();
                send(successor, name, "of the successor");
                Checks.equal(InvalidProducerEpochException.class, Checks.refusal(
                    () -> zombie.send(new ProducerRecord<>(name, 0, null, Records.bytes("late"))).get()));
                successor.commitTransaction();
                Checks.equal(ProducerFencedException.class, Checks.refusal(() -> { // and there is no way back
                    zombie.abortTransaction();
                    zombie.beginTransaction();
                    zombie.send(new ProducerRecord<>(name, 0, null, Records.bytes("later"))).get();
                    return null;
                }));
            }
        }
        sees(cluster, name, "read_committed", "of the successor");
    }

    private static void fencedAtOffsets(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 1, Map.of());
        try (var zombie = producer(cluster, name); var successor = producer(cluster, name)) {
            zombie.beginTransaction();
            Checks.equal(ProducerFencedException.class, Checks.refusal(() -> {
                zombie.sendOffsetsToTransaction(Map.of(new TopicPartition(name, 0), new OffsetAndMetadata(1)),
                    new ConsumerGroupMetadata(name));
                return null;
            }));
            successor.beginTransaction();
            successor.sendOffsetsToTransaction(Map.of(new TopicPartition(name, 0), new OffsetAndMetadata(2)),
                new ConsumerGroupMetadata(name));
            successor.commitTransaction();
        }
        Checks.equal(Map.of(0, 2L), Groups.committed(cluster, name));
    }

    private static void fencedByAdmin(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 1, Map.of());
        try (var zombie = producer(cluster, name); Admin admin = Admin.create(cluster.with())) {
            zombie.beginTransaction();
            send(zombie, name, "of the zombie");
            zombie.flush();
            var open = admin.describeTransactions(List.of(name)).description(name).get();
            Checks.equal(TransactionState.ONGOING, open.state());
            Checks.equal(java.util.Set.of(new TopicPartition(name, 0)), open.topicPartitions());
            admin.fenceProducers(List.of(name)).all().get();
            Checks.equal(ProducerFencedException.class, Checks.refusal(() -> {
                zombie.commitTransaction();
                return null;
            }));
            Checks.equal(TransactionState.EMPTY, // aborted, and begun anew with a higher epoch
                admin.describeTransactions(List.of(name)).description(name).get().state());
        }
    }

    /** A producer whose transaction took so long that the broker aborted it. */
    private static KafkaProducer<byte[], byte[]> late(Checks.Cluster cluster, String name) throws Exception {
        var made = producer(cluster, name, "transaction.timeout.ms", 2000);
        made.beginTransaction();
        send(made, name, "too late");
        made.flush();
        try (Admin admin = Admin.create(cluster.with())) {
            Checks.until(() -> admin.describeTransactions(List.of(name)).description(name).get().state()
                == TransactionState.COMPLETE_ABORT, "its time is up");
        }
        return made;
    }

    private static final boolean IS_NEW = version().startsWith("4"); // transactions of KIP-890

    /** Version of the clients, as their jar states it: the class that reads it is in another package since 4.4. */
    private static String version() {
        var properties = new Properties();
        try (var file = KafkaProducer.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            properties.load(file);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return properties.getProperty("version");
    }

    /** KIP-588, with the transactions of KIP-890: what took too long is lost, its producer is not. */
    private static void timedOut(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 1, Map.of());
        try (var producer = late(cluster, name)) {
            Checks.equal(InvalidProducerEpochException.class, Checks.refusal(
                () -> producer.send(new ProducerRecord<>(name, 0, null, Records.bytes("later"))).get()));
            Checks.equal(IS_NEW ? null : ProducerFencedException.class, Checks.refusal(() -> {
                producer.abortTransaction();
                producer.beginTransaction();
                send(producer, name, "after");
                producer.commitTransaction();
                return null;
            }));
        }
        sees(cluster, name, "read_committed", IS_NEW ? new String[] {"after"} : new String[0]);
    }

    private static void committedTooLate(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 1, Map.of());
        try (var producer = late(cluster, name)) {
            Checks.equal(IS_NEW ? InvalidTxnStateException.class : ProducerFencedException.class,
                Checks.refusal(() -> {
                    producer.commitTransaction();
                    return null;
                }));
        }
        sees(cluster, name, "read_committed");
    }
}
