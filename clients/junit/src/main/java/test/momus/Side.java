package test.momus;

import java.util.Map;

/** A cluster as it is now, or a snapshot, to be compared. */
public sealed interface Side permits Cluster, Snapshot {
    /** As the control plane takes it. */
    Map<String, String> side();
}
