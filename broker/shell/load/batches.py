"""Makes record batches of a topic's records, each checked by the rules that a partition of the topic will have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.partitions.incoming_batch import ClientBatch, stamp
from broker.partitions.record_rules import RecordsRefusedError, TopicRules
from protocol.errors import ErrorCode, KafkaError
from protocol.partitioner import choose_partition
from protocol.record_batch import build_batch

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from broker.config.settings import BrokerConfig
    from broker.load.items import Row, TopicItem
    from broker.load.problems import Problem

MOST_RECORDS: Final = 500  # of a batch
MOST_BYTES: Final = 256 << 10
RECORD_OVERHEAD: Final = 70  # lengths, offset, time: more than a record without data has


class RecordBatch(NamedTuple):
    """Records that are appended together: `size` of them, as the bytes of a batch."""

    size: int
    data: bytes


def rules_of(config: BrokerConfig, overrides: Mapping[str, str]) -> TopicRules:
    """What a topic with these configs will take."""
    return TopicRules(
        lambda key: config.topic_value(key, overrides),
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        max_inflated_bytes=config.decompression_max_bytes,
        producer_state=config.producer_state,
    )


def spreading(topic: TopicItem, count: int) -> Generator[None, None, tuple[dict[int, list[Row]], list[Problem]]]:
    """The rows of each of `count` partitions, and those that name one that is not there; in slices of MOST_RECORDS."""
    found: dict[int, list[Row]] = {}
    problems, turn = [], 0
    for number, row in enumerate(topic.rows, 1):
        if number % MOST_RECORDS == 0:
            yield
        partition = row.partition
        if partition is None:
            partition = choose_partition(row.key, count, turn)
            turn += row.key is None
        if partition >= count:
            why = f"{topic.name} has no partition {partition}, but 0 to {count - 1}"
            problems.append(row.where.problem(why, "partition"))
        else:
            found.setdefault(partition, []).append(row)
    return found, problems


def batches_of(
    rows: list[Row], rules: TopicRules, now_ms: int, place: str
) -> Iterator[tuple[RecordBatch, list[Problem]]]:
    """Batches of the rows of one partition, each with what is wrong with it. `place`: the partition, in messages."""
    limit = min(MOST_BYTES, rules.max_message_bytes)
    waiting: list[Row] = []
    size = 0
    for row in rows:
        more = _size(row)
        if waiting and (len(waiting) == MOST_RECORDS or size + more > limit):
            yield _batch(waiting, rules, now_ms, place)
            waiting, size = [], 0
        waiting.append(row)
        size += more
    if waiting:
        yield _batch(waiting, rules, now_ms, place)


def _size(row: Row) -> int:
    """At least what a record will take."""
    inside = sum(len(name) * 3 + len(value or b"") + 10 for name, value in row.headers)
    return RECORD_OVERHEAD + len(row.key or b"") + len(row.value or b"") + inside


def _batch(rows: list[Row], rules: TopicRules, now_ms: int, place: str) -> tuple[RecordBatch, list[Problem]]:
    try:
        data = build_batch([(row.key, row.value, row.headers, row.timestamp_ms) for row in rows], timestamp_ms=now_ms)
    except (OverflowError, ValueError) as error:
        return RecordBatch(0, b""), [rows[0].where.problem(str(error))]
    problems = []
    try:
        stamp(ClientBatch(data), rules, now_ms, place)
    except RecordsRefusedError as error:
        problems = [rows[index].where.problem(f"{error.code.name}: {why}") for index, why in error.errors]
    except KafkaError as error:
        problems = [rows[0].where.problem(f"{ErrorCode(error.code).name}: {error}")]
    return RecordBatch(len(rows), data), problems
