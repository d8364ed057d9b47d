package test.momus;

import java.util.List;

/** The virtual brokers of a cluster, counted from 1. */
public final class Brokers {
    private final Cluster cluster;

    Brokers(Cluster cluster) {
        this.cluster = cluster;
    }

    private void tell(int id, String verb) {
        cluster.ask("POST", "/brokers/" + id + "/" + verb, null);
    }

    /** All of them, running or not. */
    public List<Broker> list() {
        return Control.rows(cluster.ask("GET", "/brokers", null), Broker.class);
    }

    /** Closes a broker's listeners and connections; the others lead its partitions. */
    public void stop(int id) {
        tell(id, "stop");
    }

    /** Lets it listen again, on the same ports, and lead its partitions again. */
    public void start(int id) {
        tell(id, "start");
    }

    /** Lets a broker fetch nothing of what others lead. */
    public void lag(int id) {
        tell(id, "lag");
    }

    /** Lets a broker that lags catch up. */
    public void release(int id) {
        tell(id, "release");
    }

    /** Lets a broker read and answer nothing, with its connections open. */
    public void pause(int id) {
        tell(id, "pause");
    }

    /** Lets a broker that is paused go on. */
    public void resume(int id) {
        tell(id, "resume");
    }
}
