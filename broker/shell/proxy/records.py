"""The messages that the page of a proxy shows: fetched from the upstream cluster, as a consumer does.

What is answered has the shapes of page/messages.py and page/search/follow.py, which make it. Below the last stable
offset a cluster tells which transactions were aborted; what is beyond it is open, for all that a client can know.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.asks.records import Outcomes, named
from broker.shell.control.calls.records import check_answer
from broker.shell.control.routes import Call, RefusedError
from broker.shell.local_client import LocalClient
from broker.shell.page.messages import FETCH_VERSION, PIECE_BYTES, Walk, asked_of, page_of, start_of
from broker.shell.page.search.follow import Look
from broker.shell.page.windows import number
from broker.shell.proxy.views import topic_with_offsets
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker.shell.cluster_server import ClusterServer
    from broker.shell.page.messages import Messages, Seen
    from broker.shell.page.search.follow import TopicTail

LEADERLESS: Final = -1
_SIZE_AT: Final = 8  # of a batch: its length, from the byte 12 on
_HEAD_BYTES: Final = 12


class Remote(NamedTuple):
    """A partition of the upstream cluster, as it was when it was asked about."""

    topic: str
    partition: int
    leader: int
    start: int
    stable: int
    end: int


async def partitions_of(client: LocalClient, name: str) -> list[Remote]:
    """The partitions of a topic. Errors: RefusedError: there is no such topic."""
    topic, offsets = await topic_with_offsets(client, name)
    places = [(name, each.partition_index) for each in topic.partitions]
    return [
        Remote(*place, each.leader_id, *(known.get(place, 0) for known in offsets))
        for place, each in zip(places, topic.partitions, strict=True)
    ]


async def read(client: LocalClient, at: Remote, position: int) -> AsyncIterator[Seen]:
    """The records from an offset to the end, markers included. Errors: RefusedError."""
    walk = Walk(at.partition, position, Outcomes(stable=at.stable))
    while walk.position < at.end:
        found = await _fetch(client, at, walk.position)
        data = _whole_batches(bytes(found.records or b""))
        if not data:
            return
        walk.outcomes.expect(named(found.aborted_transactions))
        async for row in walk.rows(data):
            yield row


def _whole_batches(data: bytes) -> bytes:
    """The bytes without the last batch, if Kafka has cut it at the limit of the Fetch."""
    whole = 0
    while whole + _HEAD_BYTES <= len(data):
        size = _HEAD_BYTES + int.from_bytes(data[whole + _SIZE_AT : whole + _HEAD_BYTES], "big")
        if whole + size > len(data):
            break
        whole += size
    return data[:whole]


async def _fetch(client: LocalClient, at: Remote, position: int) -> Any:
    """Committed ones as long as there are, for with them the aborted transactions are told."""
    if at.leader == LEADERLESS:
        raise RefusedError(409, f"{at.topic}-{at.partition}: LEADER_NOT_AVAILABLE")
    asked = FetchPartition(partition=at.partition, fetch_offset=position, partition_max_bytes=PIECE_BYTES)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=PIECE_BYTES,
        isolation_level=int(position < at.stable),
        session_epoch=-1,
        topics=[FetchTopic(topic=at.topic, partitions=[asked])],
    )
    row = (await client.call(request, FETCH_VERSION, at.leader)).responses[0].partitions[0]
    check_answer(row.error_code, f"{at.topic}-{at.partition}")
    return row


async def show_messages(cluster: ClusterServer, call: Call) -> Messages:
    """Messages from an offset or a time on; without either the newest. Errors: RefusedError."""
    client, name, index = LocalClient(cluster.broker, cluster.config), call.words["topic"], number(call, "partition", 0)
    wanted = asked_of(call)
    found = await partitions_of(client, name)
    if index >= len(found):
        raise RefusedError(404, f"no such partition: {name:.100}-{index}")
    at = found[index]
    start = await start_of(call, client, (name, index), at.leader, at.start, at.end, wanted.limit)
    rows, position = await page_of(cluster, name, wanted, start, read(client, at, start))
    return {
        "topic": name,
        "partition": index,
        "from": start,
        "next_offset": position,
        "start": at.start,
        "end": at.end,
        "messages": rows,
    }


async def show_tail(cluster: ClusterServer, call: Call) -> TopicTail:
    """Messages since a look before, oldest first, and how many older ones were not looked at. Errors: RefusedError."""
    look, client, name = Look(call), LocalClient(cluster.broker, cluster.config), call.words["topic"]
    for at in await partitions_of(client, name):
        if look.covers(at.partition):
            await look.read(at.partition, at.start, at.end, partial(read, client, at))
    return await look.answer(cluster, name)
