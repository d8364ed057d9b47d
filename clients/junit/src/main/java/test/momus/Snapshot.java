package test.momus;

import java.util.Map;

/** The state of a cluster at a moment: what a restart would find. It is gone with its cluster. */
public final class Snapshot implements Side {
    private final Cluster cluster;
    private final String name;

    Snapshot(Cluster cluster, String name) {
        this.cluster = cluster;
        this.name = name;
    }

    /** Its name. */
    public String name() {
        return name;
    }

    /** Goes back to it, on the same ports; connections are cut, faults and the journal begin again. */
    public void restore() {
        cluster.beginAnew("/restore", Map.of("snapshot", name));
    }

    /** Another cluster that goes on from it; neither sees the other. */
    public Cluster fork() {
        return cluster.fork(Map.of("snapshot", name));
    }

    /** Gives it up; what was made from it stays. */
    public void remove() {
        cluster.ask("DELETE", "/snapshots" + Control.part(name), null);
    }

    @Override
    public Map<String, String> side() {
        return Map.of("cluster", cluster.name(), "snapshot", name);
    }
}
