import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Bills what a share group is given. "planted" acknowledges an order before it is billed, "right" after. It ends when nothing
 * came for a while. Orders that are billed stand in a file, which outlives it.
 */
public final class ShareBilling {
    private static final long QUIET_MS = 700;

    private ShareBilling() {}

    public static void main(String[] words) throws Exception {
        String servers = words[0];
        Path billed = Path.of(words[1], servers.substring(servers.lastIndexOf(':') + 1));
        boolean isPlanted = words[2].equals("planted");
        Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", "billing", "share.acknowledgement.mode", "explicit",
            "key.deserializer", StringDeserializer.class, "value.deserializer", StringDeserializer.class);
        fromTheBeginning(servers);
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config)) {
            consumer.subscribe(List.of("orders"));
            boolean hasCome = false;
            long last = System.currentTimeMillis();
            while (System.currentTimeMillis() - last < (hasCome || Files.exists(billed) ? QUIET_MS : 10 * QUIET_MS)) {
                for (ConsumerRecord<String, String> order : consumer.poll(Duration.ofMillis(100))) {
                    hasCome = true;
                    if (!isPlanted)
                        bill(billed, order.value());
                    consumer.acknowledge(order, AcknowledgeType.ACCEPT);
                    consumer.commitSync();
                    if (isPlanted)
                        bill(billed, order.value());
                    last = System.currentTimeMillis();
                }
            }
        }
    }

    private static void fromTheBeginning(String servers) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "billing");
            AlterConfigOp earliest = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(group, List.of(earliest))).all().get();
        }
    }

    private static void bill(Path file, String order) throws IOException {
        Set<String> known = new HashSet<>(Files.exists(file) ? Files.readAllLines(file) : List.of());
        if (known.add(order)) // what comes again is billed once
            Files.writeString(file, order + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
}
