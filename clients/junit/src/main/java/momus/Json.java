package momus;

import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Writes JSON: what a record holds, and nothing more. */
final class Json {
    private Json() {}

    /** A key or a value as the control plane takes it: a text, null, or bytes in base64. */
    static String ofBytes(Object value) {
        if (value instanceof byte[] data)
            return "{\"base64\": \"" + Base64.getEncoder().encodeToString(data) + "\"}";
        if (value == null || value instanceof String)
            return of(value);
        throw new IllegalArgumentException("a text, bytes or null, not a " + value.getClass().getName());
    }

    /** Maps, lists, texts, numbers, booleans and null. */
    static String of(Object value) {
        if (value == null || value instanceof Boolean)
            return String.valueOf(value);
        if (value instanceof Double || value instanceof Float) {
            if (!Double.isFinite(((Number) value).doubleValue()))
                throw new IllegalArgumentException("JSON has no " + value);
            return value.toString();
        }
        if (value instanceof Number)
            return value.toString();
        if (value instanceof String text)
            return quoted(text);
        if (value instanceof Map<?, ?> map)
            return map.entrySet().stream()
                .map(each -> quoted(String.valueOf(each.getKey())) + ":" + of(each.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        if (value instanceof List<?> list)
            return list.stream().map(Json::of).collect(Collectors.joining(",", "[", "]"));
        throw new IllegalArgumentException("JSON has no " + value.getClass().getName());
    }

    private static String quoted(String text) {
        StringBuilder made = new StringBuilder("\"");
        for (char each : text.toCharArray())
            if (each == '"' || each == '\\')
                made.append('\\').append(each);
            else if (each < ' ')
                made.append(String.format("\\u%04x", (int) each));
            else
                made.append(each);
        return made.append('"').toString();
    }
}
