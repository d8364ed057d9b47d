package test.momus;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;

/** The last requests of a cluster, each with its reply. */
public final class Journal {
    private final Cluster cluster;

    Journal(Cluster cluster) {
        this.cluster = cluster;
    }

    private static Map<String, Object> said(Word... filters) {
        Map<String, Object> said = new LinkedHashMap<>();
        for (Word each : filters)
            each.into(said);
        return said;
    }

    private static Map<String, Object> body(Limits limits, Word... filters) {
        Map<String, Object> body = new LinkedHashMap<>(limits.words);
        body.put("filters", said(filters));
        return body;
    }

    /** The requests that fit, oldest first: the newest 10,000, as docs/journal.md tells. */
    public List<JournalEntry> entries(Word... filters) {
        String query = said(filters).entrySet().stream()
            .map(each -> each.getKey() + "=" + Control.query(String.valueOf(each.getValue()))).collect(Collectors.joining("&"));
        JsonNode answer = cluster.ask("GET", "/journal?limit=10000" + (query.isEmpty() ? "" : "&" + query), null);
        return Control.stream(answer.path("entries")).map(JournalEntry::of).toList();
    }

    /** Why requests that fit were refused, oldest first. */
    public List<String> whys(Word... filters) {
        return entries(filters).stream().map(JournalEntry::why).filter(Objects::nonNull).toList();
    }

    /** Errors: AssertionError, with what came near: such requests did not come as often. Returns how many. */
    public int verify(Limits limits, Word... filters) {
        JsonNode answer = cluster.ask("POST", "/journal/verify?check=false", body(limits, filters));
        if (!answer.path("met").asBoolean())
            throw new AssertionError(answer.path("why").asText());
        return answer.path("count").asInt();
    }

    /** Verifies it when the test is over, over all resets and restores. */
    public void expect(Limits limits, Word... filters) {
        cluster.ask("POST", "/journal/expect", body(limits, filters));
    }

    /** Takes back what was expected. */
    public void expectNothing() {
        cluster.ask("DELETE", "/journal/expect", null);
    }

    /** The last requests, a line each. */
    public List<String> last(int n) {
        return Control.texts(cluster.ask("GET", "/journal/last?n=" + n, null).path("lines"));
    }

    /** Keeps so many bytes of the last requests; 0: none. */
    public void keep(int bytes) {
        cluster.ask("POST", "/journal", Map.of("bytes", bytes));
    }

    /** Drops what is kept. */
    public void clear() {
        cluster.ask("DELETE", "/journal", null);
    }
}
