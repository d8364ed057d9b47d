"""The lag of a group over the last minutes, from the logs alone: its commits, and where each partition ended then.

A partition ended at a time where the first record begins that is not older. So a point is right as far as times of
records are those of their arrival, which LogAppendTime makes sure of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from broker.shell.control.routes import Call
from broker.shell.page.history import accepted
from broker.shell.page.topics import UNREADABLE
from broker.shell.page.windows import number, slices

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

USUAL_MINUTES: Final = 10
MOST_MINUTES: Final = 24 * 60
USUAL_POINTS: Final = 60
MOST_POINTS: Final = 300
MOST_LOOKUPS: Final = 3000  # of ends by time, in one answer: with many partitions there are fewer points
ACCEPTED: Final = ("accepted", "committed")

PartitionKey = tuple[str, int]


class LagPoint(TypedDict):
    """A lag at a time; None before the first commit that is known."""

    at_ms: int
    lag: int | None


class Lags(TypedDict):
    """The lag of a group over time, oldest first."""

    group: str
    partitions: int
    points: list[LagPoint]


async def show_lag(cluster: ClusterServer, call: Call) -> Lags:
    """Points, oldest first. Errors: RefusedError."""
    group, clock = call.words["group"], cluster.clock
    minutes = number(call, "minutes", USUAL_MINUTES, MOST_MINUTES, 1)
    points = number(call, "points", USUAL_POINTS, MOST_POINTS, 2)
    rows, _ = await accepted(cluster, group)
    rows = [row for row in rows if row["verdict"] in ACCEPTED]
    places = {(row["topic"], row["partition"]) for row in rows}
    points = max(2, min(points, MOST_LOOKUPS // max(1, len(places))))
    now_ms, step_ms = clock.now_ms(), minutes * 60_000 / (points - 1)
    known: dict[PartitionKey, int] = {}
    found, at = list[LagPoint](), 0
    async for index in slices(cluster, range(points), 1):
        at_ms = round(now_ms - (points - 1 - index) * step_ms)
        while at < len(rows) and rows[at]["time_ms"] <= at_ms:
            known[rows[at]["topic"], rows[at]["partition"]] = rows[at]["offset"]
            at += 1
        lag = None if not known else sum(_lag(cluster, place, offset, at_ms) for place, offset in known.items())
        found.append({"at_ms": at_ms, "lag": lag})
    return {"group": group, "partitions": len(places), "points": found}


def _lag(cluster: ClusterServer, place: PartitionKey, committed: int, at_ms: int) -> int:
    """Records of a partition after what was committed, at a time; 0 where the partition cannot be read."""
    broker, (name, index) = cluster.broker, place
    topic = broker.metadata.topics.get(name)
    if topic is None or index >= len(topic.partitions) or not broker.partitions.has(topic, index):
        return 0
    try:
        partition = broker.partitions.get(topic, index)
        found = partition.log.offset_for_timestamp(at_ms + 1)
        end = partition.high_watermark if found is None else found[1]
    except UNREADABLE:
        return 0
    return max(0, end - committed)
