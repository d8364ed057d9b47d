import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.OffsetMetadataTooLarge;

/** Members share a topic, come and go, and the group goes on where it was. */
final class Groups {
    private static final int PARTITIONS = 6;

    static void register() {
        String assignors = "org.apache.kafka.clients.consumer.";
        for (String assignor : List.of("RangeAssignor", "StickyAssignor", "CooperativeStickyAssignor")) {
            Checks.ON_ONE.put("group-of-three-rebalances-" + assignor,
                (c, n) -> play(c, n, "partition.assignment.strategy", assignors + assignor));
        }
        Checks.ON_THREE.put("group-on-three-brokers-rebalances", (c, n) -> play(c, n));
        Checks.ON_ONE.put("cooperative-rebalance-takes-only-what-moves",
            (c, n) -> onlyWhatMoves(c, n, assignors + "CooperativeStickyAssignor"));
        Checks.ON_ONE.put("static-member-keeps-its-share-and-is-fenced-by-its-double", Groups::staticMembers);
        Checks.ON_ONE.put("commit-with-metadata-is-read-back", Groups::commitMetadata);
        Checks.ON_ONE.put("group-goes-on-where-it-committed", Groups::goesOn);
        Checks.ON_ONE.put("subscription-to-a-pattern-finds-a-topic-made-later", Groups::pattern);
        Checks.ON_ONE.put("stranger-cannot-commit-for-a-running-group", Groups::stranger);
    }

    /** One consumer in a thread of its own; commits what it processed after each poll. */
    static final class Member extends Thread implements ConsumerRebalanceListener {
        private final Checks.Cluster cluster;
        private final String name;
        private final Object[] settings;
        private final CountDownLatch ended = new CountDownLatch(1);
        volatile boolean stopping;
        volatile Set<Integer> assigned = Set.of();
        volatile int revocations;
        final Set<Integer> revoked = new HashSet<>();
        final ConcurrentLinkedQueue<String> received = new ConcurrentLinkedQueue<>();
        final AtomicReference<Throwable> failure = new AtomicReference<>();

        Member(Checks.Cluster cluster, String name, Object... settings) {
            this.cluster = cluster;
            this.name = name;
            this.settings = settings;
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            Object[] all = new Object[settings.length + 6];
            System.arraycopy(settings, 0, all, 6, settings.length);
            all[0] = "group.id"; all[1] = name;
            all[2] = "heartbeat.interval.ms"; all[3] = 100;
            all[4] = "session.timeout.ms"; all[5] = 30_000;
            try (var consumer = Records.consumer(cluster, all)) {
                consumer.subscribe(List.of(name), this);
                while (!stopping) {
                    var records = consumer.poll(Duration.ofMillis(50));
                    assigned = consumer.assignment().stream().map(TopicPartition::partition)
                        .collect(Collectors.toSet());
                    if (!records.isEmpty()) {
                        consumer.commitSync();
                        records.forEach(record -> received.add(new String(record.value())));
                    }
                }
            } catch (Throwable caught) {
                failure.set(caught);
            }
            assigned = Set.of();
            ended.countDown();
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> revoked.add(partition.partition()));
            revocations++;
        }

        void leave() throws Exception {
            stopping = true;
            Checks.that(ended.await(120, TimeUnit.SECONDS), "the member ends");
            if (failure.get() != null) {
                throw new AssertionError(failure.get());
            }
        }
    }

    /** Whether the members own every partition once, and each its fair share. */
    static boolean sharedEvenly(List<Member> members, int partitions) {
        List<Integer> owned = new ArrayList<>();
        for (Member member : members) {
            if (member.failure.get() != null) {
                throw new AssertionError(member.failure.get());
            }
            owned.addAll(member.assigned);
            if (member.assigned.size() != partitions / members.size()) {
                return false;
            }
        }
        return owned.stream().sorted().toList().equals(IntStream.range(0, partitions).boxed().toList());
    }

    static void commit(Checks.Cluster cluster, String group, String topic, long offset) {
        try (var consumer = Records.consumer(cluster, "group.id", group)) {
            consumer.commitSync(Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(offset)));
        }
    }

    static Map<Integer, Long> committed(Checks.Cluster cluster, String group) throws Exception {
        try (Admin admin = Admin.create(cluster.with())) {
            return admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().entrySet().stream()
                .collect(Collectors.toMap(each -> each.getKey().partition(), each -> each.getValue().offset()));
        }
    }

    /** Three members share a topic, one leaves, another joins; each record reaches the group once. */
    private static void play(Checks.Cluster cluster, String name, Object... settings) throws Exception {
        Records.create(cluster, name, PARTITIONS, Map.of());
        List<Member> members = new ArrayList<>();
        List<Member> everyone = new ArrayList<>();
        Set<String> sent = new HashSet<>();
        for (int stage = 0; stage < 3; stage++) {
            if (stage == 1) {
                members.remove(0).leave();
            } else {
                for (int i = stage == 0 ? 3 : 1; i > 0; i--) {
                    members.add(new Member(cluster, name, settings));
                    everyone.add(members.get(members.size() - 1));
                }
            }
            String what = "stage " + stage;
            Checks.until(() -> sharedEvenly(members, PARTITIONS), "the topic is shared, " + what);
            try (var producer = Records.producer(cluster)) {
                for (int i = 0; i < 30; i++) {
                    String value = stage + "-" + i;
                    producer.send(new ProducerRecord<>(name, i % PARTITIONS, null, Records.bytes(value)));
                    sent.add(value);
                }
            }
            Checks.until(() -> everyone.stream().mapToInt(m -> m.received.size()).sum() >= sent.size(), what);
            List<String> received = new ArrayList<>();
            everyone.forEach(member -> received.addAll(member.received));
            Checks.equal(sent.size(), received.size());
            Checks.equal(sent, new HashSet<>(received));
        }
        for (Member member : members) {
            member.leave();
        }
        Checks.equal(IntStream.range(0, PARTITIONS).boxed().collect(Collectors.toMap(p -> p, p -> 15L)),
            committed(cluster, name));
    }

    private static void onlyWhatMoves(Checks.Cluster cluster, String name, String assignor) throws Exception {
        Records.create(cluster, name, PARTITIONS, Map.of());
        Member first = new Member(cluster, name, "partition.assignment.strategy", assignor);
        Checks.until(() -> sharedEvenly(List.of(first), PARTITIONS), "the first member owns all");
        Member second = new Member(cluster, name, "partition.assignment.strategy", assignor);
        Checks.until(() -> sharedEvenly(List.of(first, second), PARTITIONS), "both share");
        Checks.equal(second.assigned, first.revoked);
        first.leave();
        second.leave();
    }

    private static void staticMembers(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 4, Map.of());
        Member a = new Member(cluster, name, "group.instance.id", "a");
        Member b = new Member(cluster, name, "group.instance.id", "b");
        Checks.until(() -> sharedEvenly(List.of(a, b), 4), "both share");
        Set<Integer> share = a.assigned;
        int revocations = b.revocations;
        a.leave(); // a static member sends no LeaveGroup
        Member returned = new Member(cluster, name, "group.instance.id", "a");
        Checks.until(() -> sharedEvenly(List.of(returned, b), 4), "the member is back");
        Checks.equal(share, returned.assigned);
        Checks.equal(revocations, b.revocations); // nobody else noticed
        Member twin = new Member(cluster, name, "group.instance.id", "a");
        Checks.until(() -> returned.failure.get() != null, "the older one is fenced");
        Checks.equal(FencedInstanceIdException.class, returned.failure.get().getClass());
        Checks.until(() -> twin.assigned.equals(share), "its double has its share");
        twin.leave();
        b.leave();
        try (Admin admin = Admin.create(cluster.with())) {
            Checks.equal(2, admin.describeConsumerGroups(List.of(name)).all().get().get(name).members().size());
            admin.removeMembersFromConsumerGroup(name, new RemoveMembersFromConsumerGroupOptions(
                List.of(new MemberToRemove("a"), new MemberToRemove("b")))).all().get();
            Checks.equal(0, admin.describeConsumerGroups(List.of(name)).all().get().get(name).members().size());
        }
    }

    private static void commitMetadata(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 2, Map.of());
        TopicPartition first = new TopicPartition(name, 0);
        TopicPartition second = new TopicPartition(name, 1);
        try (var consumer = Records.consumer(cluster, "group.id", name)) {
            OffsetAndMetadata told = new OffsetAndMetadata(17, java.util.Optional.of(0), "größe €");
            consumer.commitSync(Map.of(first, told));
            Map<TopicPartition, OffsetAndMetadata> found = consumer.committed(Set.of(first, second));
            Checks.equal(told, found.get(first));
            Checks.equal(null, found.get(second));
            Checks.equal(OffsetMetadataTooLarge.class, Checks.refusal(() -> {
                consumer.commitSync(Map.of(second, new OffsetAndMetadata(1, "x".repeat(4097))));
                return null;
            }));
            CountDownLatch answered = new CountDownLatch(1);
            consumer.commitAsync(Map.of(second, new OffsetAndMetadata(5)), (offsets, error) -> {
                if (error == null) {
                    answered.countDown();
                }
            });
            consumer.assign(List.of(second));
            Checks.until(() -> {
                consumer.poll(Duration.ofMillis(10));
                return answered.getCount() == 0;
            }, "the commit is answered");
        }
        Checks.equal(Map.of(0, 17L, 1, 5L), committed(cluster, name));
    }

    private static void goesOn(Checks.Cluster cluster, String name) throws Exception {
        try (var producer = Records.producer(cluster)) {
            for (int i = 0; i < 10; i++) {
                producer.send(new ProducerRecord<>(name, 0, null, Records.bytes("" + i))).get();
            }
        }
        for (int[] part : new int[][] {{0, 4}, {4, 8}, {8, 10}}) {
            int count = part[1] - part[0];
            try (KafkaConsumer<byte[], byte[]> consumer =
                    Records.consumer(cluster, "group.id", name, "max.poll.records", count)) {
                consumer.subscribe(List.of(name));
                List<ConsumerRecord<byte[], byte[]>> records = Records.read(consumer, count);
                Checks.equal((long) part[0], records.get(0).offset());
                consumer.commitSync();
            }
        }
    }

    private static void pattern(Checks.Cluster cluster, String name) throws Exception {
        try (var producer = Records.producer(cluster);
                var consumer = Records.consumer(cluster, "group.id", name, "metadata.max.age.ms", 200)) {
            producer.send(new ProducerRecord<>(name + "-1", Records.bytes("one"))).get();
            consumer.subscribe(Pattern.compile(name + "-[0-9]"));
            Checks.equal("one", new String(Records.read(consumer, 1).get(0).value()));
            consumer.commitSync();
            producer.send(new ProducerRecord<>(name + "-2", Records.bytes("two"))).get();
            Checks.equal("two", new String(Records.read(consumer, 1).get(0).value()));
        }
    }

    private static void stranger(Checks.Cluster cluster, String name) throws Exception {
        Records.create(cluster, name, 2, Map.of());
        Member member = new Member(cluster, name);
        Checks.until(() -> member.assigned.size() == 2, "the member owns the topic");
        Checks.equal(CommitFailedException.class, Checks.refusal(() -> {
            commit(cluster, name, name, 1);
            return null;
        }));
        member.leave();
        commit(cluster, name, name, 2);
        Checks.equal(Map.of(0, 2L), committed(cluster, name));
    }
}
