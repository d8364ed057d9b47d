"""The history of a group's offsets: who committed what, accepted or refused, and the sentence that says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypedDict

from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.offsets.provenance import CLIENT, GENERATION, INSTANCE, MEMBER
from broker.coordinator.offsets.replay_run import offset_key
from broker.coordinator.records import committed_value
from broker.coordinator.replay import LAST_OFFSET_TYPE
from broker.shell.asking import Asking
from broker.shell.control.routes import Call
from broker.shell.page.messages import read
from broker.shell.page.tail import newest, topic_name
from broker.shell.page.windows import number
from protocol.errors import KafkaError, error_label

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

MOST_RECORDS: Final = 5000  # of the newest in the log that are looked at
MOST_PIECES: Final = 20_000  # of the newest in the journal
MOST_ROWS: Final = 500
APIS: Final = ("OffsetCommit", "TxnOffsetCommit")


class _Committer(TypedDict):
    member: str
    instance: str
    epoch: int
    client: str


class CommitRow(_Committer):
    """A commit of one partition: who made it, and whether it was accepted, or why not."""

    time_ms: int
    topic: str
    partition: int
    offset: int
    verdict: str
    why: str
    fault: str


class History(TypedDict):
    """Commits of a group, the newest first."""

    group: str
    records_seen: int
    has_journal: bool
    history: list[CommitRow]


async def show_history(cluster: ClusterServer, call: Call) -> History:
    """Commits of a group, the newest first: from the log those accepted, from the journal those refused."""
    group, limit = call.words["group"], number(call, "limit", 100, MOST_ROWS, 1)
    found, scanned = await accepted(cluster, group)
    rows = [*found, *await _refused(cluster, group)]
    rows.sort(key=lambda row: row["time_ms"])  # commits of one millisecond stay in order
    has_journal = cluster.broker.clients.journal is not None
    return {"group": group, "records_seen": scanned, "has_journal": has_journal, "history": rows[::-1][:limit]}


async def accepted(cluster: ClusterServer, group: str) -> tuple[list[CommitRow], int]:
    """The rows of accepted commits, and how many records were looked at."""
    broker = cluster.broker
    topic, index = broker.metadata.topics[OFFSETS_TOPIC], broker.groups.index_of(group)
    if not broker.partitions.has(topic, index):
        return [], 0
    try:
        partition = broker.partitions.get(topic, index)
    except KafkaError:
        return [], 0
    start = max(partition.log_start_offset, partition.high_watermark - MOST_RECORDS)
    rows: list[CommitRow] = []
    scanned = 0
    who = _who({})
    batch = -1
    with Asking(cluster) as asking:
        async for row in read(asking, partition, start):
            scanned += 1
            if row.batch != batch:  # its first record says who
                batch, who = row.batch, _who(dict(row.headers))
            key, value = row.key, row.value
            if row.is_control or key is None or int.from_bytes(key[:2], "big") > LAST_OFFSET_TYPE:
                continue
            name, topic_id, place = offset_key(key)
            if name == group:
                found = None if value is None else committed_value(value)
                verdict = "deleted" if found is None else row.outcome or "accepted"
                offset = -1 if found is None else found.offset
                rows.append(_row(row.timestamp_ms, topic_id, place, offset, who, verdict))
    return rows, scanned


async def _refused(cluster: ClusterServer, group: str) -> list[CommitRow]:
    """The rows of refused commits, as far back as the journal goes, and MOST_PIECES."""
    ring = cluster.broker.clients.journal
    if ring is None:
        return []
    rows: list[CommitRow] = []
    for entry in await newest(cluster, ring, MOST_PIECES):
        if entry.api not in APIS or not entry.reply:
            continue
        request: Any = entry.request()
        response: Any = entry.response()
        if request is None or response is None or request.group_id != group:
            continue
        name_of = topic_name(cluster)
        codes = {
            (_name(topic, name_of), each.partition_index): each.error_code
            for topic in response.topics
            for each in topic.partitions
        }
        generation = getattr(request, "generation_id_or_member_epoch", None)
        who: _Committer = {
            "member": request.member_id or "",
            "instance": request.group_instance_id or "",
            "epoch": request.generation_id if generation is None else generation,
            "client": entry.client_id,
        }
        why = ring.notes(entry.peer, entry.correlation_id)
        for topic in request.topics:
            for each in topic.partitions:
                place = _name(topic, name_of), each.partition_index
                if codes.get(place, 0):
                    row = _row(entry.at_ms, *place, each.committed_offset, who, error_label(codes[place]))
                    rows.append({**row, "why": why.get("why", ""), "fault": why.get("fault", "")})
    return rows


def _name(topic: Any, name_of: Callable[[bytes], str]) -> str:
    return str(topic.name or name_of(getattr(topic, "topic_id", b"")))


def _row(time_ms: int, topic: str, partition: int, offset: int, who: _Committer, verdict: str) -> CommitRow:
    return {
        "time_ms": time_ms,
        "topic": topic,
        "partition": partition,
        "offset": offset,
        **who,
        "verdict": verdict,
        "why": "",
        "fault": "",
    }


def _who(headers: dict[str, bytes | None]) -> _Committer:
    generation = headers.get(GENERATION)
    return {
        "member": _text(headers.get(MEMBER)),
        "instance": _text(headers.get(INSTANCE)),
        "epoch": -1 if generation is None else int.from_bytes(generation, "big"),
        "client": _text(headers.get(CLIENT)),
    }


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace")
