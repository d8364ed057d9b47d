"""Which topics use the ids of a subject: looked for in the newest records of each partition, when it is asked for.

A message in Confluent's wire format begins with a zero byte and an id. Nothing else says which topics use a schema: the
name of a subject is one of several conventions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from broker.shell.asking import Asking
from broker.shell.control.routes import Call, RefusedError
from broker.shell.page.messages import read
from broker.shell.page.registry import MAGIC, PREFIX_BYTES
from broker.shell.page.schemas import state_of
from broker.shell.page.topics import UNREADABLE, bounds
from broker.shell.page.windows import slices

if TYPE_CHECKING:
    from broker.cluster.topics import Topic
    from broker.shell.cluster_server import ClusterServer

NEWEST: Final = 100  # records of a partition
MOST_PARTITIONS: Final = 500


class UseRow(TypedDict):
    """Records of a topic whose key or value (`field`) carries an id, and the offset of the newest."""

    topic: str
    field: str
    id: int
    records: int
    offset: int


class Use(TypedDict):
    """Topics that use the ids of a subject, in the `newest` records of so many partitions."""

    subject: str
    looked_at: int
    partitions: int
    newest: int
    topics: list[UseRow]


async def show_use(cluster: ClusterServer, call: Call) -> Use:
    """Topics with how many of their newest records carry an id of a subject. Errors: RefusedError."""
    state, subject = await state_of(cluster), call.words["subject"]
    ids = {row.id for row in state.versions(subject, deleted=True)}
    if not ids:
        raise RefusedError(404, f"no such subject: {subject:.100}")
    broker = cluster.broker
    topics = sorted(broker.metadata.topics.values(), key=lambda each: (not subject.startswith(each.name), each.name))
    places = [(topic, index) for topic in topics if not topic.internal for index in range(len(topic.partitions))]
    found: dict[tuple[str, str, int], list[int]] = {}
    looked = 0
    with Asking(cluster) as asking:
        async for topic, index in slices(cluster, places[:MOST_PARTITIONS], 20):
            try:
                await _look(cluster, asking, topic, index, ids, found)
                looked += 1
            except (*UNREADABLE, RefusedError):  # it has no leader, or is being deleted
                continue
    rows: list[UseRow] = [
        {"topic": name, "field": field, "id": number, "records": records, "offset": offset}
        for (name, field, number), (records, offset) in sorted(found.items())
    ]
    return {"subject": subject, "looked_at": looked, "partitions": len(places), "newest": NEWEST, "topics": rows}


async def _look(
    cluster: ClusterServer,
    asking: Asking,
    topic: Topic,
    index: int,
    ids: set[int],
    found: dict[tuple[str, str, int], list[int]],
) -> None:
    """Count the ids in the newest records of a partition. Errors: UNREADABLE, RefusedError."""
    start, end = bounds(cluster.broker, topic, index)
    if start == end:
        return
    partition = cluster.broker.partitions.get(topic, index)
    async for row in read(asking, partition, max(start, end - NEWEST)):
        if row.is_control:
            continue
        for field, data in (("key", row.key), ("value", row.value)):
            number = _id(data)
            if number in ids:
                counted = found.setdefault((topic.name, field, number), [0, 0])
                counted[0] += 1
                counted[1] = max(counted[1], row.offset)


def _id(data: bytes | None) -> int:
    """The id that a message begins with; -1: none."""
    if data is None or len(data) < PREFIX_BYTES or data[0] != MAGIC:
        return -1
    return int.from_bytes(data[1:PREFIX_BYTES], "big")
