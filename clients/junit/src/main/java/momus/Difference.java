package momus;

import com.fasterxml.jackson.databind.JsonNode;

/** What is different between two sides. Rows have a value where a side has one. */
public record Difference(JsonNode rows) {
    /** Whether something is. */
    public boolean isDifferent() {
        return rows.path("different").asBoolean();
    }

    /** A line a row. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        rows.fields().forEachRemaining(what -> what.getValue().forEach(
            row -> text.append(what.getKey()).append(' ').append(row).append('\n')));
        return text.toString();
    }
}
