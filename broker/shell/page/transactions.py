"""The transactions view: transactional ids with their states, and the timeline of one with its fenced zombies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.asks.rows import TransactionDetails, TransactionEvent, TransactionRow, TransactionRows
from broker.cluster.topic_names import TRANSACTIONS_TOPIC
from broker.coordinator.transactions.transaction import STATE_NAMES, Transaction, decode_transaction
from broker.shell.asking import Asking
from broker.shell.control.routes import Call
from broker.shell.page.messages import read
from broker.shell.page.tail import newest, topic_name
from broker.shell.page.topics import UNREADABLE
from broker.shell.page.windows import number, slices, window

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

MOST_RECORDS: Final = 5000  # of the newest in the log that are looked at
MOST_PIECES: Final = 20_000  # of the newest in the journal
MOST_EVENTS: Final = 500
ENDS: Final = {"CompleteCommit": "all markers are written", "CompleteAbort": "all markers are written"}
FENCED: Final = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_TXN_STATE", "TRANSACTIONAL_ID_NOT_FOUND")


async def list_transactions(cluster: ClusterServer, call: Call) -> TransactionRows:
    """A window on the transactional ids."""
    broker = cluster.broker
    found: dict[str, Transaction] = {}
    loading = 0
    if TRANSACTIONS_TOPIC in broker.metadata.topics:
        broker.transactions.open()
        for index, shard in enumerate(broker.transactions.shards):
            if shard.machine is None and not broker.directory.exists(TRANSACTIONS_TOPIC, index):
                continue
            try:
                shard.require()
            except UNREADABLE:
                loading += 1
                continue
            async for each in slices(cluster, list(shard.machine)):
                found[each.transactional_id] = each
    names, offset, total = await window(cluster, call, found)
    return {
        "offset": offset,
        "total": total,
        "loading": loading,
        "transactions": [_state(found[name]) for name in names],
    }


def _state(each: Transaction) -> TransactionRow:
    return {
        "transactional_id": each.transactional_id,
        "state": STATE_NAMES[each.state],
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "timeout_ms": each.timeout_ms,
        "start_ms": each.start_ms,
        "updated_ms": each.updated_ms,
        "partitions": [f"{topic}-{index}" for topic, indexes in each.partitions.items() for index in sorted(indexes)],
    }


async def show_transaction(cluster: ClusterServer, call: Call) -> TransactionDetails:
    """The present state of an id (Dead: there is none), and what happened to it, newest first. Errors: KafkaError."""
    name, broker, limit = call.words["transactional_id"], cluster.broker, number(call, "limit", 100, MOST_EVENTS, 1)
    if TRANSACTIONS_TOPIC not in broker.metadata.topics:
        return _unknown(name)
    shard = broker.transactions.shard(name)
    state = shard.machine.transactions.get(name)
    if state is None:
        return _unknown(name)
    events = [*await _steps(cluster, name), *await _refused(cluster, name)]
    events.sort(key=lambda event: event["time_ms"])  # steps of one millisecond stay in order
    groups = sorted(shard.machine.groups.get(name, {}))
    return {**_state(state), "groups": groups, "events": events[::-1][:limit]}


def _unknown(name: str) -> TransactionDetails:
    unknown = Transaction(name, -1, 0)
    return {**_state(unknown), "state": "Dead", "groups": [], "events": []}


async def _steps(cluster: ClusterServer, name: str) -> list[TransactionEvent]:
    """The states that the log has of an id."""
    broker = cluster.broker
    topic, index = (
        broker.metadata.topics[TRANSACTIONS_TOPIC],
        broker.metadata.coordinator_index(name, TRANSACTIONS_TOPIC),
    )
    partition = broker.partitions.get(topic, index)
    start = max(partition.log_start_offset, partition.high_watermark - MOST_RECORDS)
    events = list[TransactionEvent]()
    before: set[str] = set()
    with Asking(cluster) as asking:
        async for row in read(asking, partition, start):
            key, value = row.key, row.value
            if key is None or value is None or key[:2] != b"\0\0":
                continue
            each = decode_transaction(key, value)
            if each.transactional_id != name:
                continue
            state = _state(each)
            added = [place for place in state["partitions"] if place not in before]
            before = set(state["partitions"])
            producer = state["producer_id"], state["producer_epoch"]
            events.append(_event(each.updated_ms, state["state"], producer, added, ENDS.get(state["state"], "")))
    return events


async def _refused(cluster: ClusterServer, name: str) -> list[TransactionEvent]:
    """What the journal saw refused: zombies that were fenced."""
    ring = cluster.broker.clients.journal
    if ring is None:
        return []
    from broker.journal.reading import error_names, fits  # 5 ms: most brokers keep no journal

    events, name_of = [], topic_name(cluster)
    async for entry in slices(cluster, await newest(cluster, ring, MOST_PIECES), 50):
        errors = error_names(entry.response()) if entry.reply else []
        if not set(errors) & set(FENCED) or not fits(entry, {}, name_of):
            continue
        request: Any = entry.request()
        if getattr(request, "transactional_id", None) != name:
            continue
        notes = ring.notes(entry.peer, entry.correlation_id)
        producer = getattr(request, "producer_id", -1), getattr(request, "producer_epoch", -1)
        why = f"{entry.client_id}: {entry.api}: {notes.get('why', '')}"
        events.append(_event(entry.at_ms, ", ".join(errors), producer, [], why, notes.get("fault", "")))
    return events


def _event(
    time_ms: int, what: str, producer: tuple[int, int], added: list[str], why: str, fault: str = ""
) -> TransactionEvent:
    return {
        "time_ms": time_ms,
        "what": what,
        "producer_id": producer[0],
        "producer_epoch": producer[1],
        "added": added,
        "why": why,
        "fault": fault,
    }
