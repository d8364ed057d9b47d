import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Commits what it is told: `java Ledger SERVERS GROUP TOPIC PARTITIONS` reads lines `partition=offset ...` and answers
 * `ok` or `error ...`; an empty line asks what is committed, and is answered in the same form.
 */
public final class Ledger {
    public static void main(String[] arguments) throws Exception {
        String group = arguments[1];
        String topic = arguments[2];
        Checks.Cluster cluster = new Checks.Cluster(arguments[0]);
        Records.create(cluster, topic, Integer.parseInt(arguments[3]), Map.of());
        var lines = new BufferedReader(new InputStreamReader(System.in));
        try (var consumer = Records.consumer(cluster, "group.id", group, "reconnect.backoff.max.ms", 100);
                Admin admin = Admin.create(cluster.with("reconnect.backoff.max.ms", 100))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                try {
                    if (line.isEmpty()) {
                        StringBuilder answer = new StringBuilder();
                        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach(
                            (partition, at) -> answer.append(partition.partition()).append('=').append(at.offset())
                                .append(' '));
                        System.out.println(answer);
                    } else {
                        Map<TopicPartition, OffsetAndMetadata> told = new HashMap<>();
                        for (String each : line.split(" ")) {
                            String[] pair = each.split("=");
                            told.put(new TopicPartition(topic, Integer.parseInt(pair[0])),
                                new OffsetAndMetadata(Long.parseLong(pair[1])));
                        }
                        consumer.commitSync(told, Duration.ofSeconds(10));
                        System.out.println("ok");
                    }
                } catch (Exception failure) {
                    System.out.println("error " + failure);
                }
            }
        }
    }
}
