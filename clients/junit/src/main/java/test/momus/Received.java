package test.momus;

import java.nio.charset.StandardCharsets;
import java.util.List;

/** A record that was read. A key or value that is not there is null. Time in Unix milliseconds. */
public record Received(String topic, int partition, long offset, long timestampMs, byte[] key, byte[] value, List<Header> headers) {
    /** One of its headers. */
    public record Header(String name, byte[] value) {}

    /** Its value as a text; null: it is a tombstone. */
    public String text() {
        return value == null ? null : new String(value, StandardCharsets.UTF_8);
    }

    /** Its key as a text; null: it has none. */
    public String keyText() {
        return key == null ? null : new String(key, StandardCharsets.UTF_8);
    }
}
