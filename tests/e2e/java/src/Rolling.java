import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Members of the consumer protocol share a topic and start again one by one; every record is seen once. */
final class Rolling {
    private static final long LIMIT_MS = 120_000;

    static final class Member extends Thread {
        final String kind, topic;
        final Map<String, Object> settings = new HashMap<>();
        volatile boolean stopping;
        volatile Set<Integer> assigned = Set.of();
        final Map<String, Integer> seen = new ConcurrentHashMap<>();
        final AtomicReference<Throwable> failure = new AtomicReference<>();

        Member(String servers, String topic, String kind, int number) {
            this.topic = topic;
            this.kind = kind;
            settings.put("bootstrap.servers", servers);
            settings.put("group.id", topic);
            settings.put("group.protocol", "consumer");
            settings.put("enable.auto.commit", false);
            settings.put("auto.offset.reset", "earliest");
            settings.put("key.deserializer", StringDeserializer.class);
            settings.put("value.deserializer", StringDeserializer.class);
            settings.put("metadata.max.age.ms", 500);
            if (kind.equals("static")) settings.put("group.instance.id", "i" + number);
            if (kind.equals("range")) settings.put("group.remote.assignor", "range");
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            try (var consumer = new KafkaConsumer<String, String>(settings)) {
                if (kind.equals("pattern")) {
                    consumer.subscribe(new SubscriptionPattern(topic.substring(0, topic.length() - 1) + "."));
                } else {
                    consumer.subscribe(List.of(topic));
                }
                while (!stopping) {
                    var records = consumer.poll(Duration.ofMillis(20));
                    assigned = partitions(consumer.assignment());
                    for (ConsumerRecord<String, String> record : records) seen.merge(record.value(), 1, Integer::sum);
                    if (!records.isEmpty()) consumer.commitSync();
                }
            } catch (Throwable failed) {
                failure.set(failed);
            }
            assigned = Set.of();
        }

        private static Set<Integer> partitions(Collection<TopicPartition> of) {
            return of.stream().map(TopicPartition::partition).collect(Collectors.toSet());
        }

        void end() throws Exception {
            stopping = true;
            join(LIMIT_MS);
            check();
        }

        void check() {
            if (failure.get() != null) throw new IllegalStateException(failure.get());
        }
    }

    static boolean shared(List<Member> members, int partitions) {
        Set<Integer> all = new HashSet<>();
        int count = 0;
        for (Member member : members) {
            member.check();
            var has = member.assigned;
            if (has.isEmpty() || has.size() > (partitions + members.size() - 1) / members.size()) return false;
            count += has.size();
            all.addAll(has);
        }
        return count == partitions && all.size() == partitions;
    }

    interface Condition { boolean holds(); }

    static void until(Condition condition, String what) throws Exception {
        long end = System.currentTimeMillis() + LIMIT_MS;
        while (!condition.holds()) {
            if (System.currentTimeMillis() > end) throw new IllegalStateException("waited in vain: " + what);
            Thread.sleep(20);
        }
    }

    public static void main(String[] words) throws Exception {
        String servers = words[0], topic = words[1], kind = words[2];
        int count = Integer.parseInt(words[3]), partitions = Integer.parseInt(words[4]);
        List<Member> members = new ArrayList<>(), everyone;
        for (int i = 0; i < count; i++) members.add(new Member(servers, topic, kind, i));
        everyone = new ArrayList<>(members);
        until(() -> shared(members, partitions), "members share the topic");
        Set<String> sent = new HashSet<>();
        Map<String, Object> settings = Map.of("bootstrap.servers", servers,
            "key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class);
        try (var producer = new KafkaProducer<String, String>(settings)) {
            for (int turn = 0; turn < count; turn++) {
                for (int p = 0; p < partitions; p++) {
                    String value = turn + "-" + p;
                    sent.add(value);
                    producer.send(new ProducerRecord<>(topic, p, null, value));
                }
                producer.flush();
                Set<Integer> had = members.get(turn).assigned;
                members.get(turn).end();
                members.set(turn, new Member(servers, topic, kind, turn));
                everyone.add(members.get(turn));
                until(() -> shared(members, partitions), "members share the topic again");
                if (kind.equals("static") && !members.get(turn).assigned.equals(had)) {
                    throw new IllegalStateException("had " + had + ", has " + members.get(turn).assigned);
                }
            }
            until(() -> everyone.stream().flatMap(m -> m.seen.keySet().stream()).collect(Collectors.toSet())
                .containsAll(sent), "every record arrives");
        }
        System.out.println("shared");
        System.out.flush();
        System.in.read();  // the test looks at the group meanwhile
        for (Member member : members) member.end();
        Map<String, Integer> seen = new HashMap<>();
        everyone.forEach(m -> m.seen.forEach((value, times) -> seen.merge(value, times, Integer::sum)));
        System.out.println("records " + sent.size() + " seen " + seen.size()
            + " times " + seen.values().stream().mapToInt(Integer::intValue).sum());
    }
}
