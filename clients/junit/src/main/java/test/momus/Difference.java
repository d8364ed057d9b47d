package test.momus;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What is different between two sides: kind (topics, settings, records, offsets, members) to its rows, which have a value where
 * a side has one.
 */
public record Difference(boolean isDifferent, Map<String, List<Map<String, Object>>> rows) {
    static Difference of(JsonNode answer) {
        Map<String, List<Map<String, Object>>> rows = new LinkedHashMap<>();
        answer.fields().forEachRemaining(kind -> {
            if (kind.getValue().isArray())
                rows.put(kind.getKey(), Control.maps(kind.getValue()));
        });
        return new Difference(answer.path("different").asBoolean(), rows);
    }

    /** A line a row. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        rows.forEach((kind, each) -> each.forEach(row -> text.append(kind).append(' ').append(Control.JSON.valueToTree(row).toString()).append('\n')));
        return text.toString();
    }
}
