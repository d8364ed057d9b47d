"""Handlers of topics and records, so that a test can arrange and look without a client: create, consume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict

from broker.asks import topics
from broker.asks.ask import label
from broker.asks.records import committed_records, fetch, named
from broker.shell.asking import Asking, ask
from broker.shell.control.routes import Call, RefusedError
from broker.shell.control.waiting import Wait
from protocol.errors import ErrorCode
from protocol.record_json import from_json, to_json

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.shell.cluster_server import ClusterServer
    from protocol.record import Record as LogRecord

LOOK_AGAIN_S: Final = 0.005
MOST_RECORDS: Final = 10_000
ANSWER_BYTES: Final = 8 << 20
# A topic was deleted, or its leader has moved, between two requests of one call.
MOVED: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
# The kits' words, and those of Kafka's isolation.level.
ISOLATION: Final = {"uncommitted": False, "committed": True, "read_uncommitted": False, "read_committed": True}


class CreatedTopic(TypedDict):
    """A topic that was made."""

    name: str
    partitions: int


class Record(TypedDict):
    """A record that was read: bytes are a text, or {"base64": ...}. schemas.py describes it."""

    partition: int
    offset: int
    timestamp_ms: int
    key: object
    value: object
    headers: list[list[object]]


class Consumed(TypedDict):
    """Records that were read; `more`: ask again with `offsets` and `source`."""

    records: list[Record]
    met: bool
    why: str
    more: bool
    offsets: dict[str, int]
    source: str


async def create_topic(cluster: ClusterServer, call: Call) -> CreatedTopic:
    """Create a topic. Errors: RefusedError."""
    body = call.body
    wanted = topics.new_topic(
        body["name"], body.get("partitions", -1), body.get("replicas", -1), body.get("config", {})
    )
    (row,) = await ask(cluster, topics.create([wanted]))
    check_answer(row.error_code, f"topic {row.name}", row.error_message)
    return {"name": row.name, "partitions": row.num_partitions}


async def create_topics(cluster: ClusterServer, call: Call) -> list[CreatedTopic]:
    """Create topics, all of them or none. Errors: RefusedError: with each that is refused, and why."""
    body = call.body
    wanted = [
        topics.new_topic(name, partitions, body.get("replicas", -1), body.get("config", {}))
        for name, partitions in body["topics"].items()
    ]
    for only_check in (True, False):
        rows = await ask(cluster, topics.create(wanted, only_check=only_check))
        if wrong := [row for row in rows if row.error_code]:
            told = (f"{row.name}: {label(row.error_code)}: {row.error_message}" for row in wrong)
            raise RefusedError(409, f"topic {'; topic '.join(told)}")
    return [{"name": row.name, "partitions": row.num_partitions} for row in rows]


async def consume(cluster: ClusterServer, call: Call) -> Consumed:
    """Read records, and wait until there are `least`. Errors: RefusedError.

    An answer has `most` at most. Where it has as many, `more` says so, and `offsets` are where to go on; `source` says
    of which topic they are, so that no records of another are put after those that were read. Without `least` the
    topic and the partition must exist; else they are waited for, and `offsets` has only what is there.
    """
    topic, body = call.words["topic"], call.body
    least, most = body.get("least", 0), body.get("most", MOST_RECORDS)
    isolation, timeout_ms = body.get("isolation", "uncommitted"), body.get("timeout_ms", 0)
    if isolation not in ISOLATION:
        raise RefusedError(400, f'"isolation" takes one of {", ".join(ISOLATION)}')
    if not 0 <= least <= most <= MOST_RECORDS:
        raise RefusedError(400, f'"least" and "most" take 0 to {MOST_RECORDS}, "most" not less than "least"')
    positions = _positions(body.get("offsets", {}))
    if min(body.get("offset", 0), *positions.values(), 0) < 0:  # -1 and -2 have a meaning elsewhere in Kafka
        raise RefusedError(400, '"offset" and "offsets" take 0 or more')
    broker, life, source = cluster.broker, cluster.life, body.get("source", "")
    keys = (bytes_of("key", body["key"]),) if "key" in body else None
    with Asking(cluster) as asking:
        reader = _Reader(asking, topic, isolation, most, keys, waits=least > 0)
        found = reader.found
        with Wait(cluster, timeout_ms, LOOK_AGAIN_S) as wait:
            while True:
                leaders = await asking.ask(topics.leaders_of(topic))
                partitions = sorted(leaders) if "partition" not in body else [body["partition"]]
                if not least:  # what is not there yet is not waited for
                    _check_there(topic, partitions, leaders)
                begun, source = source, _source(broker, life, topic)
                if begun not in ("", source):
                    _check_nothing_read(topic, found, body)
                    positions.clear()
                for partition in partitions:
                    position = positions.get(partition, body.get("offset", 0))
                    positions[partition] = await reader.read(partition, position) if partition in leaders else position
                if source != _source(broker, life, topic):
                    _check_nothing_read(topic, found, body)
                if len(found) >= least or wait.is_over:
                    offsets = {str(each): position for each, position in positions.items() if each in leaders}
                    is_full = len(found) == most
                    why = "" if len(found) >= least else _too_few(topic, body, offsets, len(found))
                    return {
                        "records": found,
                        "met": not why,
                        "why": why,
                        "more": is_full,
                        "offsets": offsets,
                        "source": source,
                    }
                await wait.pause()


def _too_few(topic: str, body: dict[str, Any], offsets: dict[str, int], found: int) -> str:
    """Why there are not as many records as are waited for."""
    if not offsets:
        return f"there is no {'partition' if 'partition' in body else 'topic'} {topic:.100}" + (
            f"-{body['partition']}" if "partition" in body else ""
        )
    of_key = f" with key {body['key']!r:.100}" if "key" in body else ""
    return f"{topic:.100} has {found} records{of_key}, not {body['least']}"


def _positions(offsets: dict[str, int]) -> dict[int, int]:
    """Errors: RefusedError."""
    for partition in offsets:
        if not (partition.isascii() and partition.isdigit() and len(partition) < 11):
            raise RefusedError(400, f'"offsets" takes numbers of partitions, not {partition:.40}')
    return {int(partition): offset for partition, offset in offsets.items()}


def _source(broker: Broker, life: int, topic: str) -> str:
    """Which topic of this name it is; "" while there is none. With a seed, ids of topics repeat in each life."""
    found = broker.metadata.topics.get(topic)
    return "" if found is None else f"{life}-{found.topic_id.hex()}"


def _check_nothing_read(topic: str, found: list[Record], body: dict[str, Any]) -> None:
    """The topic is another one than before: its records do not follow those that were read. Errors: RefusedError."""
    if found or body.get("source"):
        why = "it was deleted, or the cluster was reset or restored"
        raise RefusedError(409, f"{topic} is no longer the topic whose records were read: {why}; read it again")


def _check_there(topic: str, partitions: list[int], leaders: dict[int, int]) -> None:
    """Refuse to read what does not exist: a name that is wrong would look empty. Errors: RefusedError."""
    if not leaders:
        raise RefusedError(404, f"there is no topic {topic}: create it, or ask for a number of records to wait for it")
    if not leaders.keys() >= set(partitions):
        raise RefusedError(404, f"{topic} has no partition {partitions[0]}, but 0 to {len(leaders) - 1}")


class _Reader:
    """Reads records of a topic, until `most` are found.

    keys   records with one of these keys alone; None: all.
    waits  what has gone since its leaders were looked up is looked for again later; otherwise it is refused.
    """

    def __init__(
        self,
        asking: Asking,
        topic: str,
        isolation: str,
        most: int,
        keys: tuple[bytes | None, ...] | None = None,
        *,
        waits: bool,
    ) -> None:
        self.found: list[Record] = []
        self._asking = asking
        self._topic = topic
        self._isolation = isolation
        self._most = most
        self._keys = keys
        self._waits = waits

    async def read(self, partition: int, position: int) -> int:
        """Add those from an offset on. Returns the offset after the last of the partition. Errors: RefusedError."""
        is_committed, topic = ISOLATION[self._isolation], self._topic
        while len(self.found) < self._most:
            asked = fetch(topic, partition, position, committed=is_committed, most_bytes=ANSWER_BYTES)
            row = await self._asking.ask(asked)
            if self._waits and row.error_code in MOVED:
                break
            if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:  # the reply does not say where the log begins
                first = await self._asking.ask(topics.offset_at(topic, partition, topics.EARLIEST))
                if position < first:
                    position = first
                    continue
            check_answer(row.error_code, f"{self._topic}-{partition}")
            data = bytes(row.records or b"")
            if not data:
                break
            for offset, record in committed_records(data, named(row.aborted_transactions)):
                if record is not None and offset >= position and (self._keys is None or record.key in self._keys):
                    self.found.append(_shown(partition, record))
                position = max(position, offset + 1)
                if len(self.found) == self._most:
                    break
        return position


def _shown(partition: int, record: LogRecord) -> Record:
    return {
        "partition": partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "key": to_json(record.key),
        "value": to_json(record.value),
        "headers": [[name, to_json(value)] for name, value in record.headers],
    }


def bytes_of(where: str, value: Any) -> bytes | None:
    """Errors: RefusedError."""
    try:
        return from_json(value)
    except ValueError:
        raise RefusedError(400, f'"{where}" takes a text, null or {{"base64": "..."}}') from None


def check_answer(code: int, what: str, message: str | None = None) -> None:
    """Errors: RefusedError: the answer has an error code."""
    if code:
        raise RefusedError(409, f"{what}: {label(code)}{': ' + message if message else ''}")
