"""The walk through the records of one share partition: each fault, at its place and in its words; no fault, nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.coordinator.share.combine import StateBatch
from broker.coordinator.share.state import Key, ShareState, snapshot_record, tombstone, update_key, update_value
from pipeline.audit.share_states import (
    AGAIN,
    BEYOND,
    SKIPPED,
    UNREAD,
    StateRecord,
    _decoded,
    partition_key,
    walk,
)
from protocol.messages.share_state_records import ShareSnapshotValue, ShareUpdateValue
from protocol.record import decode_records
from protocol.record_batch import HEADER_BYTES, iter_batches

AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4
ID = bytes(range(16))
KEY = Key("g", ID, 0)
EMPTY = ShareState(0, 1, 0, 0, 0, 1, 1)
Batch = tuple[int, int, int, int]  # first, last, state, count


def snapshot(start: int = 0, *batches: Batch, epoch: int = 0, state_epoch: int = 1, key: Key = KEY) -> Any:
    made = tuple(StateBatch(*batch) for batch in batches)
    return snapshot_record(
        key, EMPTY._replace(snapshot_epoch=epoch, state_epoch=state_epoch, start_offset=start, batches=made)
    )


def update(start: int, *batches: Batch, epoch: int = 0, key: Key = KEY) -> Any:
    return update_key(key), update_value(epoch, 0, start, -1, [StateBatch(*batch) for batch in batches])


def walked(*records: Any, limit: int = 5, lost: Sequence[int] = ()) -> list[tuple[str, int, int | None, int, int, int]]:
    """(what, offset, proof offset, lost, first, last) of what is wrong. lost: missing offsets before each record."""
    missing = [*lost, *[lost[-1] if lost else 0] * len(records)]
    made = [StateRecord(at, missing[at], *record) for at, record in enumerate(records)]
    return [wrong[:6] for wrong in walk(made, limit)]


def test_what_a_group_may_do_is_not_wrong():
    assert walked(
        snapshot(0),
        update(0, (0, 9, AVAILABLE, 1)),  # released
        update(0, (0, 4, ACKNOWLEDGED, 2), (5, 5, AVAILABLE, 2), (6, 9, ARCHIVED, 2)),  # 6 to 9 rejected
        update(0, (0, 4, ACKNOWLEDGED, 2)),  # a write that was tried again
        update(5, (5, 5, ARCHIVED, 5)),  # came to the limit
        snapshot(10, epoch=1),
        update(-1, (10, 19, ACKNOWLEDGED, 1), epoch=1),
        snapshot(0, epoch=2, state_epoch=2),  # an operator has set it back
        update(0, (0, 9, ACKNOWLEDGED, 1), epoch=2),
        tombstone(KEY),
        snapshot(0),
        update(-1, (0, 9, ACKNOWLEDGED, 1)),
    ) == []  # fmt: skip  # one to a line


def test_acknowledged_record_that_comes_again_is_wrong():
    begin = (snapshot(0), update(0, (0, 9, ACKNOWLEDGED, 1)))
    assert walked(*begin, update(0, (3, 4, ACKNOWLEDGED, 2))) == [(AGAIN, 2, 1, 0, 3, 4)]
    assert walked(*begin, update(0, (9, 12, AVAILABLE, 2))) == [(AGAIN, 2, 1, 0, 9, 9)]
    assert walked(*begin, update(10), update(10, (3, 3, ACKNOWLEDGED, 2))) == [(AGAIN, 3, 1, 0, 3, 3)]
    idle = (*begin, update(10), snapshot(10, epoch=1))
    assert walked(*idle, update(10, (3, 3, ACKNOWLEDGED, 2), epoch=1)) == [(AGAIN, 4, 1, 0, 3, 3)]
    assert walked(*begin, update(0, (3, 4, ACKNOWLEDGED, 2)), lost=(0, 0, 7)) == [(AGAIN, 2, 1, 7, 3, 4)]


def test_archived_record_that_comes_again_is_wrong():
    begin = (snapshot(0), update(0, (0, 9, ARCHIVED, 2)))
    assert walked(*begin, update(0, (9, 9, ACKNOWLEDGED, 3))) == [(AGAIN, 2, 1, 0, 9, 9)]


def test_way_through_a_dead_letter_queue_is_not_wrong():
    begin = (snapshot(0), update(0, (0, 4, ARCHIVING, 1), (5, 9, AVAILABLE, 1)))
    assert walked(*begin, update(0, (0, 4, ARCHIVED, 1)), update(5, (5, 9, ACKNOWLEDGED, 2))) == []
    assert walked(*begin, update(0, (0, 4, ARCHIVING, 1)), update(0, (0, 4, ARCHIVED, 1))) == []  # tried again
    assert walked(*begin, update(5, (5, 9, ACKNOWLEDGED, 2))) == []  # Kafka could not write ARCHIVED


@pytest.mark.parametrize("state", [AVAILABLE, ACKNOWLEDGED, ARCHIVING])
def test_record_on_the_way_to_a_dead_letter_queue_that_comes_again_is_wrong(state):
    begin = (snapshot(0), update(0, (0, 9, ARCHIVING, 2)))
    assert walked(*begin, update(0, (9, 9, state, 3))) == [(AGAIN, 2, 1, 0, 9, 9)]
    (wrong,) = walk([StateRecord(at, 0, *record) for at, record in enumerate([*begin, update(0, (9, 9, state, 3))])], 5)
    assert wrong.detail.endswith("but was on the way to a dead-letter queue at delivery 2")


@pytest.mark.parametrize("state", [ARCHIVING, ARCHIVED])
def test_record_that_is_given_up_without_a_delivery_is_wrong(state):
    assert walked(snapshot(0), update(0, (2, 3, state, 0))) == [(UNREAD, 1, None, 0, 2, 3)]


def test_state_that_began_again_contradicts_nothing():
    begin = (snapshot(0), update(0, (0, 9, ACKNOWLEDGED, 1)))
    assert walked(*begin, snapshot(0, (0, 9, ACKNOWLEDGED, 2), epoch=1, state_epoch=2)) == []  # an operator set it back
    assert walked(*begin, tombstone(KEY), snapshot(0, (0, 9, ACKNOWLEDGED, 2), epoch=1)) == []


def test_delivery_beyond_the_limit_is_wrong():
    assert walked(snapshot(0), update(0, (1, 1, AVAILABLE, 5), (2, 3, ACKNOWLEDGED, 6))) == [(BEYOND, 1, None, 0, 2, 3)]
    assert walked(snapshot(0, (1, 1, ARCHIVED, 6)), snapshot(0, (1, 1, ARCHIVED, 6), epoch=1)) == [
        (BEYOND, 0, None, 0, 1, 1)
    ]


def test_archived_record_without_a_delivery_is_wrong():
    assert walked(snapshot(0), update(0, (1, 4, ARCHIVED, 0))) == [(UNREAD, 1, None, 0, 1, 4)]


def test_passed_records_that_are_not_finished_are_wrong_if_they_are_there():
    wrong = [(SKIPPED, 2, 1, 0, 0, 1), (SKIPPED, 2, 1, 0, 5, 7), (SKIPPED, 2, 1, 0, 9, 9)]
    begin = (snapshot(0), update(0, (2, 4, ACKNOWLEDGED, 1), (5, 5, AVAILABLE, 1), (8, 8, ARCHIVED, 1)))
    assert walked(*begin, update(10)) == wrong
    assert walked(*begin, snapshot(10, (10, 10, AVAILABLE, 1), epoch=1)) == wrong
    assert walked(*begin, update(10), lost=(0, 0, 1)) == [(*each[:3], 1, *each[4:]) for each in wrong]
    assert walked(snapshot(0), update(1)) == [(SKIPPED, 1, 0, 0, 0, 0)]


def test_state_further_on_at_the_same_delivery_is_not_wrong():
    """As Kafka combines them: an acquisition comes with a higher count."""
    assert walked(snapshot(0), update(0, (0, 9, ACKNOWLEDGED, 1)), update(0, (3, 4, ARCHIVED, 1))) == []


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ((3, 3, AVAILABLE, 2), "record 3 is available at delivery 2, but was acknowledged at delivery 1"),
        ((3, 4, ARCHIVED, 2), "records 3 to 4 are archived at delivery 2, but were acknowledged at delivery 1"),
        ((10, 10, ACKNOWLEDGED, 7), "record 10 came to delivery 7, the limit is 5"),
        ((10, 12, ACKNOWLEDGED, 6), "records 10 to 12 came to delivery 6, the limit is 5"),
        ((10, 10, ARCHIVED, 0), "record 10 is archived, but never came to a consumer"),
        ((10, 12, ARCHIVED, 0), "records 10 to 12 are archived, but never came to a consumer"),
    ],
)
def test_sentence_says_which_records_and_what_of_them(said, sentence):
    records = (snapshot(0), update(0, (0, 9, ACKNOWLEDGED, 1)), update(0, said))
    made = [StateRecord(at, 0, *record) for at, record in enumerate(records)]
    assert [wrong.detail for wrong in walk(made, 5)] == [sentence]


def test_without_a_snapshot_nothing_is_known():
    again = update(0, (0, 9, ACKNOWLEDGED, 2), epoch=7)
    assert walked(update(0, (0, 9, ACKNOWLEDGED, 1)), update(5, (0, 9, ACKNOWLEDGED, 2))) == []
    assert walked(snapshot(0), update(0, (0, 9, ACKNOWLEDGED, 1)), again) == []  # of another snapshot, which is missing
    assert (
        walked(snapshot(0, (0, 9, ACKNOWLEDGED, 1)), snapshot(0, epoch=1), update(0, (0, 9, ACKNOWLEDGED, 2), epoch=1))
        == []
    )


# -- Apache Kafka's own (make_kafka_share_logs.py)


def written_by_kafka(partition: int) -> list[StateRecord]:
    """The records of the share coordinator of a group whose rejected records go to a dead-letter queue."""
    folder = Path(__file__).parent / "kafka_dead_letters" / f"__share_group_state-{partition}"
    data, found = (folder / f"{0:020d}.log").read_bytes(), list[StateRecord]()
    for at, header in iter_batches(data):
        section = data[at + HEADER_BYTES : at + 12 + header.length]
        for each in decode_records(section, header.record_count, header.base_offset, header.base_timestamp):
            found.append(StateRecord(each.offset, 0, each.key, each.value))
    return found


@pytest.mark.parametrize("partition", [0, 1])
def test_dead_letters_of_apache_kafka_are_not_wrong_and_are_when_delivered_again(partition):
    records = written_by_kafka(partition)
    key = Key(*partition_key(records[0].key))
    begin = [at for at, each in enumerate(records) if each.key[1] == 0]
    states = {each.delivery_state for record in records[1:] for each in decoded(record).state_batches}
    assert (begin[0], states >= {ACKNOWLEDGED, ARCHIVING, ARCHIVED}) == (0, True)
    assert list(walk(records, 2)) == []
    at, letter = next(
        (at, b) for at, r in enumerate(records) for b in decoded(r).state_batches if b.delivery_state == 3
    )
    again = (letter.first_offset, letter.first_offset, ACKNOWLEDGED, letter.delivery_count + 1)
    epoch = decoded(records[at]).snapshot_epoch
    planted = StateRecord(records[at].offset + 1, 0, *update(0, again, epoch=epoch, key=key))
    assert [wrong.what for wrong in walk([*records[: at + 1], planted], 9)] == [AGAIN]


def decoded(record: StateRecord) -> Any:
    return _decoded(ShareUpdateValue if record.key[1] else ShareSnapshotValue, record.value)
