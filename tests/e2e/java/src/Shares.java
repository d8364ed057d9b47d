// Share consumers of the Java client: `java Shares BOOTSTRAP GROUP TOPIC RECORDS MEMBERS` reads a topic whose values are
// numbers until each is accepted or rejected. Explicit acknowledgement: a multiple of 5 is released the first time, a
// multiple of 7 rejected. Prints a line for each delivery: member, number, delivery count, what was answered.
// With RECORDS 0 it reads until its standard input ends, and goes on when an acknowledgement is lost with the broker.

import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Shares {
    public static void main(String[] args) throws Exception {
        int records = Integer.parseInt(args[3]);
        boolean isPatient = records == 0;
        AtomicInteger left = new AtomicInteger(isPatient ? Integer.MAX_VALUE : records);
        List<Thread> members = new ArrayList<>();
        for (int member = 0; member < Integer.parseInt(args[4]); member++) {
            int number = member;
            Thread thread = new Thread(() -> read(args[0], args[1], args[2], number, left, isPatient));
            members.add(thread);
            thread.start();
        }
        if (isPatient) {
            System.in.transferTo(OutputStream.nullOutputStream());
            left.set(0);
        }
        for (Thread thread : members) {
            thread.join();
        }
    }

    private static void read(String servers, String group, String topic, int member, AtomicInteger left,
            boolean isPatient) {
        Properties settings = new Properties();
        settings.putAll(Map.of(
            "bootstrap.servers", servers,
            "group.id", group,
            "share.acknowledgement.mode", "explicit",
            "max.poll.records", "10",
            "key.deserializer", StringDeserializer.class.getName(),
            "value.deserializer", StringDeserializer.class.getName()));
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            long end = System.currentTimeMillis() + (isPatient ? 300_000 : 60_000);
            while (left.get() > 0 && System.currentTimeMillis() < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    int number = Integer.parseInt(record.value());
                    int count = record.deliveryCount().get();
                    AcknowledgeType answer = AcknowledgeType.ACCEPT;
                    if (number % 7 == 0) {
                        answer = AcknowledgeType.REJECT;
                    } else if (number % 5 == 0 && count == 1) {
                        answer = AcknowledgeType.RELEASE;
                    }
                    consumer.acknowledge(record, answer);
                    synchronized (System.out) {
                        System.out.println(member + " " + number + " " + count + " " + answer);
                    }
                    if (answer != AcknowledgeType.RELEASE) {
                        left.decrementAndGet();
                    }
                }
                consumer.commitSync(Duration.ofSeconds(10)).forEach((partition, error) -> error.ifPresent(found -> {
                    if (!isPatient) {
                        throw found;
                    }
                }));
            }
        }
    }
}
