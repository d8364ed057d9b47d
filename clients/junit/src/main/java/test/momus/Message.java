package test.momus;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A record to produce: {@code Message.of("one coffee").key("table 4").partition(2)}. A key is a text, bytes or null; a value
 * also whatever has a form in JSON: maps, lists, numbers, records. Without a partition it goes where Java's producer sends its key, without a key to
 * each partition in turn.
 */
public final class Message {
    private final Map<String, Object> row = new LinkedHashMap<>();
    private final List<List<Object>> headers = new ArrayList<>();

    private Message() {}

    /** A record with this value. */
    public static Message of(Object value) {
        Message made = new Message();
        made.row.put("value", value == null || value instanceof String || value instanceof byte[] ? encoded(value) : json(value));
        return made;
    }

    /** Its key. */
    public Message key(Object key) {
        row.put("key", encoded(key));
        return this;
    }

    /** Its partition. */
    public Message partition(int partition) {
        row.put("partition", partition);
        return this;
    }

    /** A header, a text, bytes or null. */
    public Message header(String name, Object value) {
        headers.add(Arrays.asList(name, encoded(value)));
        row.put("headers", headers);
        return this;
    }

    /** Its time, in Unix milliseconds; that of the cluster's clock otherwise. */
    public Message timestampMs(long atMs) {
        row.put("timestamp_ms", atMs);
        return this;
    }

    Map<String, Object> row() {
        return row;
    }

    static Object encoded(Object value) {
        if (value instanceof byte[] data)
            return Map.of("base64", data);
        if (value == null || value instanceof String)
            return value;
        throw new IllegalArgumentException("a text, bytes or null, not a " + value.getClass().getName());
    }

    // As a text, so that no key of it is mistaken for a word of the control plane.
    private static String json(Object value) {
        try {
            return Control.JSON.writeValueAsString(value);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("JSON has no form for a " + value.getClass().getName(), error);
        }
    }
}
