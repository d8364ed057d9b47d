"""Config keys of brokers that are about streams groups: rows as in config_defs_broker.py."""

from __future__ import annotations

from broker.config.config_defs import Row

# A row is one to three lines, not one a column.
# fmt: off
STREAMS_ROWS: tuple[Row, ...] = (
    ("group.streams.session.timeout.ms", "INT", "45000", (1, None), "", "Session timeout of streams groups."),
    ("group.streams.min.session.timeout.ms", "INT", "45000", (1, None), "",
     "Shortest session timeout a streams group may be given."),
    ("group.streams.max.session.timeout.ms", "INT", "60000", (1, None), "",
     "Longest session timeout a streams group may be given."),
    ("group.streams.heartbeat.interval.ms", "INT", "5000", (1, None), "",
     "Heartbeat interval of streams groups."),
    ("group.streams.min.heartbeat.interval.ms", "INT", "5000", (1, None), "",
     "Shortest heartbeat interval a streams group may be given."),
    ("group.streams.max.heartbeat.interval.ms", "INT", "15000", (1, None), "",
     "Longest heartbeat interval a streams group may be given."),
    ("group.streams.assignment.interval.ms", "INT", "0", (0, None), "cluster",
     "Least time between two assignments of a streams group."),
    ("group.streams.min.assignment.interval.ms", "INT", "0", (0, None), "",
     "Shortest assignment interval a streams group may be given."),
    ("group.streams.max.assignment.interval.ms", "INT", "15000", (0, None), "",
     "Longest assignment interval a streams group may be given."),
    ("group.streams.initial.rebalance.delay.ms", "INT", "0", (0, None), "",
     "Wait for more members before the first assignment of a streams group."),
    ("group.streams.max.size", "INT", "2147483647", (1, None), "", "Most members of a streams group."),
    ("group.streams.num.standby.replicas", "INT", "0", (0, None), "",
     "Standby replicas of each task of a streams group."),
    ("group.streams.max.standby.replicas", "INT", "2", (0, None), "",
     "Most standby replicas a streams group may be given."),
    ("group.streams.assignors", "LIST", "sticky", "task assignors", "", "Task assignors of streams groups."),
    ("group.streams.assignor.offload.enable", "BOOLEAN", "true", None, "cluster",
     "Assign streams groups in a thread of its own."),
    ("group.streams.task.offset.interval.ms", "INT", "60000", (1, None), "",
     "How often members of streams groups tell how far they have the state of tasks."),
    ("group.streams.min.task.offset.interval.ms", "INT", "15000", (1, None), "",
     "Shortest interval of task offsets a streams group may be given."),
    ("group.streams.num.warmup.replicas", "INT", "2", (0, None), "", "Most warm-up replicas of a streams group."),
    ("group.streams.max.warmup.replicas", "INT", "20", (0, None), "",
     "Most warm-up replicas a streams group may be given."),
    ("group.streams.rack.aware.assignment.tags", "LIST", "", None, "",
     "Client tags over which the standby replicas of streams groups are to be spread."),
    ("group.streams.topology.description.plugin.class", "CLASS", None, None, "",
     "Class that keeps descriptions of topologies."),
    ("group.streams.acceptable.recovery.lag", "LONG", "10000", (0, None), "",
     "Offsets that a member of a streams group may lack and still get an active task."),
)
# fmt: on
