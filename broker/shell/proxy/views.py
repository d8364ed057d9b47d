"""What the page of a proxy shows of topics, messages, groups, transactions and brokers: asked of the upstream cluster.

It asks as clients do, by broker/asks. Answers are the rows of a broker's own views (shell/page/); sizes in bytes are 0,
for want of a cheap way to ask. What happened to a transactional id is told by the proxy's journal, which has what
passed here; who wrote elsewhere, and when a state has changed, only the cluster's own log knows.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker.asks import groups, topics, transactions
from broker.asks.records import Outcomes, fetch, named
from broker.config.addresses import host_port
from broker.shell.asking import Asking, ask
from broker.shell.control.calls.records import check_answer
from broker.shell.control.of_cluster.clock import show_clock
from broker.shell.control.of_cluster.lifetime import describe
from broker.shell.control.routes import Call, RefusedError
from broker.shell.page.groups import MOST_LAGGING, Lagging, LaggingRow, furthest
from broker.shell.page.messages import Walk, asked_of, page_of, start_of
from broker.shell.page.search.follow import Look
from broker.shell.page.tail import newest, topic_name
from broker.shell.page.topics import MOST_PARTITIONS, configs_of
from broker.shell.page.windows import number, slices, window
from protocol.api import ApiKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker.asks.rows import (
        GroupDetails,
        GroupRow,
        GroupRows,
        PartitionRow,
        TopicDetails,
        TopicRows,
        TransactionDetails,
        TransactionEvent,
        TransactionRows,
    )
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.page.messages import Messages, Seen
    from broker.shell.page.overview import Overview
    from broker.shell.page.search.follow import TopicTail
    from broker.shell.proxy.upstream import Upstream
    from protocol.messages.cluster import MetadataResponseTopic

MOST_PIECES: Final = 20_000  # of the newest in the journal
MOST_EVENTS: Final = 500
MOST_ASKED: Final = 50  # groups, at one look at the lag of all
_SIZE_AT: Final = 8  # of a batch: its length, from the byte 12 on
_HEAD_BYTES: Final = 12


async def list_topics(cluster: ClusterServer, call: Call) -> TopicRows:
    """A window on the topics; records are those between the first and the last offset of all partitions."""
    every = {topic.name or "": topic for topic in await ask(cluster, topics.there(None))}
    names, offset, total = await window(cluster, call, list(every))
    rows = await ask(cluster, topics.rows_of([every[name] for name in names]))
    return {"offset": offset, "total": total, "topics": rows}


async def _topic(cluster: ClusterServer, name: str) -> MetadataResponseTopic:
    """Errors: RefusedError: there is none."""
    found = await ask(cluster, topics.there([name]))
    if not found:
        raise RefusedError(404, f"no such topic: {name:.100}")
    return found[0]


async def show_topic(cluster: ClusterServer, call: Call) -> TopicDetails:
    """One topic: its partitions, a window on them, and its configs. Errors: RefusedError."""
    name, begin = call.words["topic"], number(call, "offset", 0)
    topic = await _topic(cluster, name)
    total, topic.partitions = len(topic.partitions), topic.partitions[begin : begin + MOST_PARTITIONS]
    return {
        "topic": name,
        "internal": topic.is_internal,
        "total": total,
        "offset": begin,
        "partitions": await ask(cluster, topics.partitions_of(topic)),
        "configs": await configs_of(cluster, name),
    }


# -- messages


async def read(asking: Asking, topic: str, at: PartitionRow, position: int) -> AsyncIterator[Seen]:
    """The records from an offset to the end, markers included. Errors: RefusedError.

    Committed ones as long as there are: with them the cluster tells which transactions were aborted. What is beyond the
    last stable offset is open, for all that a client can know.
    """
    walk = Walk(at["partition"], position, Outcomes(stable=at["stable"]))
    while walk.position < at["end"]:
        asked = fetch(topic, at["partition"], walk.position, committed=walk.position < at["stable"])
        found = await asking.ask(asked)
        check_answer(found.error_code, f"{topic}-{at['partition']}")
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


async def show_messages(cluster: ClusterServer, call: Call) -> Messages:
    """Messages from an offset or a time on; without either the newest. Errors: RefusedError."""
    name, index, wanted = call.words["topic"], number(call, "partition", 0), asked_of(call)
    with Asking(cluster) as asking:
        found = await asking.ask(topics.partitions_of(await _topic(cluster, name)))
        if index >= len(found):
            raise RefusedError(404, f"no such partition: {name:.100}-{index}")
        at = found[index]
        start = await start_of(call, asking, (name, index), at["start"], at["end"], wanted.limit)
        rows, position = await page_of(cluster, name, wanted, start, read(asking, name, at, start))
    return {
        "topic": name,
        "partition": index,
        "from": start,
        "next_offset": position,
        "start": at["start"],
        "end": at["end"],
        "messages": rows,
    }


async def show_tail(cluster: ClusterServer, call: Call) -> TopicTail:
    """Messages since a look before, oldest first, and how many older ones were not looked at. Errors: RefusedError."""
    look, name = Look(call), call.words["topic"]
    with Asking(cluster) as asking:
        for at in await asking.ask(topics.partitions_of(await _topic(cluster, name))):
            if look.covers(at["partition"]):
                await look.read(at["partition"], at["start"], at["end"], partial(read, asking, name, at))
    return await look.answer(cluster, name)


# -- groups


async def list_groups(cluster: ClusterServer, call: Call) -> GroupRows:
    """A window on the groups of all brokers. Members, partitions and lag are those of the groups that are shown."""
    found = {each.group: each for each in await ask(cluster, groups.listed())}
    names, offset, total = await window(cluster, call, found)
    rows: list[GroupRow] = []
    for name in names:
        described = await _details(cluster, name, found[name].type or "classic")
        lags = [each.get("lag") for each in described["offsets"]]
        row: GroupRow = {
            "group": name,
            "type": described["type"] or found[name].type,
            "state": described["state"],
            "members": len(described["members"]),
            "partitions": len(described["offsets"]),
        }
        if None not in lags:
            row["lag"] = sum(each for each in lags if each is not None)
        rows.append(row)
    return {"offset": offset, "total": total, "loading": 0, "groups": rows}


async def show_lagging(cluster: ClusterServer, call: Call) -> Lagging:
    """The groups with the largest lag, of the first by name: each is several requests to the upstream cluster."""
    most, found, rows = number(call, "limit", MOST_LAGGING, MOST_ASKED, 1), await ask(cluster, groups.listed()), []
    for each in sorted(found, key=lambda row: row.group)[:MOST_ASKED]:
        described = await _details(cluster, each.group, each.type or "classic")
        lag = sum(row.get("lag", 0) for row in described["offsets"])
        rows.append(LaggingRow(group=each.group, state=described["state"], lag=lag))
    return furthest(rows, most, len(found))


async def show_group(cluster: ClusterServer, call: Call) -> GroupDetails:
    """State, epochs, members with what they have, and offsets with lag; an unknown group is Dead."""
    group = call.words["group"]
    return await _details(cluster, group, await ask(cluster, groups.type_of(group)))


async def _details(cluster: ClusterServer, group: str, kind: str) -> GroupDetails:
    upstream: Upstream = cluster.broker.upstream
    has_share_offsets = upstream.serves(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
    return await ask(cluster, groups.with_offsets(group, kind, has_share_offsets=has_share_offsets))


# -- transactions


async def list_transactions(cluster: ClusterServer, call: Call) -> TransactionRows:
    """A window on the transactional ids of all coordinators. Errors: RefusedError."""
    found = {each.transactional_id: each for each in await ask(cluster, transactions.listed())}
    names, offset, total = await window(cluster, call, found)
    states = await ask(cluster, transactions.describe_listed(found[name] for name in names))
    rows = [states.get(name) or transactions.dead(name) for name in names]
    return {"offset": offset, "total": total, "loading": 0, "transactions": rows}


async def show_transaction(cluster: ClusterServer, call: Call) -> TransactionDetails:
    """The present state of an id (Dead: there is none), and what the journal saw of it, newest first."""
    name, limit = call.words["transactional_id"], number(call, "limit", 100, MOST_EVENTS, 1)
    found = [each for each in await ask(cluster, transactions.listed()) if each.transactional_id == name]
    state = (await ask(cluster, transactions.describe_listed(found))).get(name) or transactions.dead(name)
    events = await _events(cluster, name)
    return {**state, "groups": [], "events": events[::-1][:limit]}


async def _events(cluster: ClusterServer, name: str) -> list[TransactionEvent]:
    """The requests in the journal that named an id, and how they were answered."""
    ring = cluster.broker.clients.journal
    if ring is None:
        return []
    from broker.journal.reading import error_names, fits  # 5 ms: most proxies keep no journal

    events: list[TransactionEvent] = []
    name_of = topic_name(cluster)
    async for entry in slices(cluster, await newest(cluster, ring, MOST_PIECES), 50):
        if not fits(entry, {"transactional_id": name}, name_of):
            continue
        request: Any = entry.request()
        errors = error_names(entry.response()) if entry.reply else []
        notes = ring.notes(entry.peer, entry.correlation_id)
        end = (" (commit)" if request.committed else " (abort)") if hasattr(request, "committed") else ""
        events.append(
            {
                "time_ms": entry.at_ms,
                "what": f"{entry.api}{end}{': ' if errors else ''}{', '.join(errors)}",
                "producer_id": _of(request, "producer_id"),
                "producer_epoch": _of(request, "producer_epoch"),
                "added": _added(request),
                "why": entry.client_id or "",
                "fault": notes.get("fault", ""),
            }
        )
    return events


def _of(request: Any, field: str) -> int:
    """A number of the producer, whatever the API calls it."""
    found: int = getattr(request, field, getattr(request, f"v3_and_below_{field}", transactions.UNKNOWN))
    return found


def _added(request: Any) -> list[str]:
    """The partitions that a request adds to its transaction."""
    rows = getattr(request, "v3_and_below_topics", None) or []
    return [f"{topic.name}-{index}" for topic in rows for index in topic.partitions]


# -- brokers


async def show_overview(cluster: ClusterServer, call: Call) -> Overview:
    """The brokers and what they lead."""
    leads: Counter[int] = Counter()
    in_sync: Counter[int] = Counter()
    partitions = under = 0
    found = await ask(cluster, topics.there(None))
    for each in (each for topic in found for each in topic.partitions):
        partitions += 1
        leads[each.leader_id] += 1
        in_sync.update(each.isr_nodes)
        under += len(each.isr_nodes) < len(each.replica_nodes)
    up = cluster.broker.nodes.up
    return {
        **describe(cluster),
        "requests": sum(cluster.broker.metrics.counts),
        "topics": len(found),
        "partitions": partitions,
        "under_replicated": under,
        "clock": await show_clock(cluster, call),
        "nodes": [
            {
                "id": node.node_id,
                "up": node in up,
                "lags": False,
                "paused": False,
                "listeners": ", ".join(f"{name} {host_port(at.host, at.port)}" for name, at in node.listeners.items()),
                "leads": leads[node.node_id],
                "in_sync": in_sync[node.node_id],
            }
            for node in cluster.nodes
        ],
        "features": [],
        "snapshots": [],
    }
