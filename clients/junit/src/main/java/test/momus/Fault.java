package test.momus;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/** A fault that is set. */
public final class Fault {
    private final Cluster cluster;
    private final String name;
    private final String path;

    Fault(Cluster cluster, String name) {
        this.cluster = cluster;
        this.name = name;
        path = "/faults" + Control.part(name);
    }

    /** Its name. */
    public String name() {
        return name;
    }

    /** The fault as it is now: its words, calls, hits and held. */
    public FaultState state() {
        return FaultState.of(cluster.ask("GET", path, null));
    }

    /** How many requests have matched it. */
    public int calls() {
        return state().calls();
    }

    /** On how many it has acted. */
    public int hits() {
        return state().hits();
    }

    /** How many requests and replies it keeps now. */
    public int held() {
        return state().held();
    }

    /** Waits until it keeps one request or reply, for ten seconds. */
    public void waitUntilHeld() {
        waitUntilHeld(1, Duration.ofSeconds(10));
    }

    /** Waits until it keeps n requests or replies. Errors: AssertionError. */
    public void waitUntilHeld(int n, Duration within) {
        await("held", n, within);
    }

    /** Waits until it has acted, for ten seconds. */
    public void waitUntilHit() {
        waitUntilHit(1, Duration.ofSeconds(10));
    }

    /** Waits until it has acted n times. Errors: AssertionError. */
    public void waitUntilHit(int n, Duration within) {
        await("hits", n, within);
    }

    private void await(String what, int n, Duration within) {
        cluster.await(path + "/wait", new HashMap<>(Map.of(what, n)), within);
    }

    /** Lets go all that it keeps, and replies still to come to it. Returns how many. */
    public int release() {
        return cluster.ask("POST", path + "/release", Map.of()).path("released").asInt();
    }

    /** Lets go the oldest that it keeps. Returns how many. */
    public int release(int most) {
        return cluster.ask("POST", path + "/release", Map.of("most", most)).path("released").asInt();
    }

    /** Takes it away; what it keeps goes on. */
    public void remove() {
        cluster.ask("DELETE", path, null);
    }
}
