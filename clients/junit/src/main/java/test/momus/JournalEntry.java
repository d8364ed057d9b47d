package test.momus;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;

/**
 * One request with its reply. {@code latencyMs} is null without a reply; {@code why} says why it was refused, {@code fault}
 * names the fault that has acted on it, and each is null otherwise. {@code request} and {@code response} are the decoded
 * messages, with Kafka's names in snake_case; {@code fields} are all fields that the control plane tells, these too.
 */
public record JournalEntry(long number, long atMs, Double latencyMs, String api, int version, String clientId, String principal, int broker,
    List<String> errors, String why, String fault, Map<String, Object> request, Map<String, Object> response, Map<String, Object> fields) {
    static JournalEntry of(JsonNode row) {
        return new JournalEntry(row.path("number").asLong(), row.path("at_ms").asLong(),
            row.path("latency_ms").isNumber() ? row.path("latency_ms").asDouble() : null, row.path("api").asText(), row.path("version").asInt(),
            text(row, "client_id"), text(row, "principal"), row.path("broker").asInt(), Control.texts(row.path("errors")), text(row, "why"),
            text(row, "fault"), Control.map(row.path("request")), Control.map(row.path("response")), Control.map(row));
    }

    private static String text(JsonNode row, String name) {
        return row.path(name).isTextual() ? row.path(name).asText() : null;
    }
}
