package test.momus;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;

/**
 * A fault as it is now: how many requests have matched it, on how many it has acted, how many requests and replies it keeps,
 * and all its words as the control plane has them, these too.
 */
public record FaultState(String name, String fault, int calls, int hits, int held, Map<String, Object> words) {
    static FaultState of(JsonNode row) {
        return new FaultState(row.path("name").asText(), row.path("fault").asText(), row.path("calls").asInt(),
            row.path("hits").asInt(), row.path("held").asInt(), Control.map(row));
    }
}
