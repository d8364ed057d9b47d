import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.TimestampType;

/**
 * Writes message sets by Kafka's own classes: for each magic, codec and kind of timestamp a line "MAGIC CODEC KIND HEX".
 * The set has three records from offset 5 on: k0=v0 repeated, null=v1, k2=null, at 1700000000000 and 1 and 2 ms later.
 */
public final class MessageSets {
    private static final long NOW_MS = 1_700_000_000_000L;

    public static void main(String[] arguments) {
        for (byte magic = 0; magic < 2; magic++) {
            for (CompressionType codec : CompressionType.values()) {
                if (codec != CompressionType.ZSTD) {
                    write(magic, codec, TimestampType.CREATE_TIME);
                    if (magic > 0) {
                        write(magic, codec, TimestampType.LOG_APPEND_TIME);
                    }
                }
            }
        }
    }

    private static void write(byte magic, CompressionType codec, TimestampType kind) {
        var builder = MemoryRecords.builder(
                ByteBuffer.allocate(4096), magic, Compression.of(codec).build(), kind, 5L, NOW_MS + 9);
        builder.append(NOW_MS, bytes("k0"), bytes("v0".repeat(50)));
        builder.append(NOW_MS + 1, null, bytes("v1"));
        builder.append(NOW_MS + 2, bytes("k2"), null);
        ByteBuffer written = builder.build().buffer();
        byte[] all = new byte[written.remaining()];
        written.get(all);
        String name = kind == TimestampType.CREATE_TIME ? "create" : "append";
        System.out.println(magic + " " + codec.name + " " + name + " " + HexFormat.of().formatHex(all));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
