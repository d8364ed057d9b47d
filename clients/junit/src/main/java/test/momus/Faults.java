package test.momus;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What is to go wrong in a cluster; docs/faults.md tells of each. A fault that never acted fails the test. */
public final class Faults {
    private final Cluster cluster;

    Faults(Cluster cluster) {
        this.cluster = cluster;
    }

    /** Sets a fault by its words, as a JSON file has them. */
    public Fault add(Map<String, ?> words) {
        return new Fault(cluster, cluster.ask("POST", "/faults", words).path("name").asText());
    }

    private Fault set(String kind, Map<String, Object> fixed, Word... words) {
        Map<String, Object> said = new LinkedHashMap<>(fixed);
        said.put("fault", kind);
        for (Word each : words)
            each.into(said);
        return add(said);
    }

    /** Refuses requests with an error of Kafka's, such as NOT_COORDINATOR; they take no effect. */
    public Fault injectError(String api, String error, Word... words) {
        return set("inject_error", Map.of("api", api, "error", error), words);
    }

    /** Keeps replies back so long, or requests (before), by the cluster's clock. */
    public Fault delayOn(String api, Duration by, Word... words) {
        return set("delay_on", Map.of("api", api, "ms", by.toMillis()), words);
    }

    /** Keeps replies, or requests (before), until {@link Fault#release}. */
    public Fault hold(String api, Word... words) {
        return set("hold", Map.of("api", api), words);
    }

    /**
     * Makes something happen in the cluster at a request, before it takes effect, or after it: "rebalance",
     * "expel_member", "expire_offsets", "move_coordinator", "move_leader", "restart", "abort_transaction",
     * "fence_producer".
     */
    public Fault makeEvent(String event, String api, Word... words) {
        return set("make_event", Map.of("event", event, "api", api), words);
    }

    /** Closes the connection before the request takes effect, after it, or in the middle of the reply. */
    public Fault disconnectOn(String api, Word... words) {
        return set("disconnect_on", Map.of("api", api), words);
    }

    /** Neither serves nor answers a client; its connections stay open until the fault is removed. */
    public Fault blackholeClient(String clientId, Word... words) {
        return set("blackhole_client", Map.of("client_id", clientId), words);
    }

    /** Sends each reply only when its bytes have had their time. */
    public Fault throttle(int bytesPerSecond, Word... words) {
        return set("throttle", Map.of("bytes_per_second", bytesPerSecond), words);
    }

    /** Changes one byte of the reply: the one at field("at", place) after the correlation id, else any. */
    public Fault corruptReply(String api, Word... words) {
        return set("corrupt_reply", Map.of("api", api), words);
    }

    /** Lets the request take effect twice, as after a lost reply; the client gets the second reply. */
    public Fault deliverTwice(String api, Word... words) {
        return set("deliver_twice", Map.of("api", api), words);
    }

    /** Lets each write and each sync take so much longer. */
    public Fault slowDisk(Duration by, Word... words) {
        return set("slow_disk", Map.of("ms", by.toMillis()), words);
    }

    /** Lets writes fail for want of room, once so many bytes have been written. */
    public Fault fullDisk(long freeBytes, Word... words) {
        return set("full_disk", Map.of("free_bytes", freeBytes), words);
    }

    /** Lets writes fail. */
    public Fault failWrite(Word... words) {
        return set("fail_write", Map.of(), words);
    }

    /** Lets syncs fail. */
    public Fault failFsync(Word... words) {
        return set("fail_fsync", Map.of(), words);
    }

    /** Refuses what the broker writes to the dead-letter queue (topic) of a share group (group). */
    public Fault failDeadLetter(String error, Word... words) {
        return set("fail_dead_letter", Map.of("error", error), words);
    }

    /** Lets a request of the schema registry meet an error, a delay, a hold or a disconnect. */
    public Fault registry(String does, Word... words) {
        return set("registry", Map.of("do", does), words);
    }

    /** All that are set, with calls, hits and held. */
    public List<FaultState> list() {
        return Control.stream(cluster.ask("GET", "/faults", null)).map(FaultState::of).toList();
    }

    /** All kinds there are, each with its fields and filters. */
    public List<Kind> kinds() {
        return Control.rows(cluster.ask("GET", "/faults/kinds", null), Kind.class);
    }

    /** Removes all, also those that never acted; what they keep goes on. */
    public void clear() {
        cluster.ask("DELETE", "/faults", null);
    }
}
