"""The one rule for what became of a batch's transaction, against a history that was made step by step."""

from __future__ import annotations

import random

import pytest

from broker.asks.records import ABORTED, COMMITTED, MARKER, NONE, OPEN, Outcomes, committed_records, named
from protocol.messages.fetch import AbortedTransaction
from protocol.record_batch import ABORT, COMMIT, TRANSACTIONAL, build_batch, control_batch, iter_batches

PRODUCERS = (7, 8, 9)


def made_history(seed: int) -> tuple[bytes, dict[int, str], list[AbortedTransaction], dict[int, int], int]:
    """A log, the outcome of each batch by its offset, the aborted transactions, the open ones, the stable offset."""
    rng = random.Random(seed)
    data, offset = b"", 0
    outcomes: dict[int, str] = {}
    begun: dict[int, list[int]] = {}  # producer -> offsets of the batches of its open transaction
    aborted: list[AbortedTransaction] = []
    for _ in range(rng.randrange(5, 40)):
        producer = rng.choice(PRODUCERS)
        what = rng.random()
        if what < 0.2:
            outcomes[offset] = NONE
            count = rng.randrange(1, 4)
            data += build_batch([(b"k", b"plain")] * count, timestamp_ms=1, base_offset=offset)
        elif what < 0.7:
            begun.setdefault(producer, []).append(offset)
            count = rng.randrange(1, 4)
            data += build_batch(
                [(b"k", b"%d" % producer)] * count, timestamp_ms=1, base_offset=offset, attributes=TRANSACTIONAL,
                producer_id=producer, producer_epoch=0, base_sequence=0,
            )  # fmt: skip  # several to a line
        elif producer in begun:
            kind, count = rng.choice([ABORT, COMMIT]), 1
            places = begun.pop(producer)
            outcomes |= dict.fromkeys(places, ABORTED if kind == ABORT else COMMITTED) | {offset: MARKER}
            if kind == ABORT:
                aborted.append(AbortedTransaction(producer_id=producer, first_offset=places[0]))
            data += control_batch(kind, producer_id=producer, producer_epoch=0, timestamp_ms=1, base_offset=offset)
        else:
            continue
        offset += count
    for places in begun.values():
        outcomes |= dict.fromkeys(places, OPEN)
    rng.shuffle(aborted)  # Kafka names them in the order of their ends
    opened = {producer: places[0] for producer, places in begun.items()}
    return data, outcomes, aborted, opened, min(opened.values(), default=offset)


@pytest.mark.parametrize("seed", range(60))
def test_outcome_of_each_batch_is_what_the_history_made_of_it(seed):
    data, outcomes, aborted, opened, _ = made_history(seed)
    told = Outcomes(named(aborted), opened)
    assert {h.base_offset: told.of(h, data[at : at + h.size]) for at, h in iter_batches(data)} == outcomes


@pytest.mark.parametrize("seed", range(60))
def test_what_is_in_a_transaction_is_open_from_the_stable_offset_on(seed):
    data, outcomes, aborted, _, stable = made_history(seed)
    told = Outcomes(named(aborted), stable=stable)
    for at, header in iter_batches(data):
        is_known = header.base_offset < stable or outcomes[header.base_offset] in (NONE, MARKER)
        wanted = outcomes[header.base_offset] if is_known else OPEN
        assert told.of(header, data[at : at + header.size]) == wanted


@pytest.mark.parametrize("seed", range(60))
def test_records_of_a_reply_are_those_that_a_consumer_sees(seed):
    data, outcomes, aborted, _, _ = made_history(seed)
    wanted = set()
    for _, header in iter_batches(data):
        if outcomes[header.base_offset] not in (MARKER, ABORTED):
            wanted |= {*range(header.base_offset, header.next_offset)}
    assert {offset for offset, record in committed_records(data, named(aborted)) if record is not None} == wanted


def test_transactions_of_the_next_reply_take_the_place_of_those_of_the_one_before():
    data, *_ = made_history(3)
    told = Outcomes([(0, producer) for producer in PRODUCERS])
    told.expect([])
    for at, header in iter_batches(data):
        assert told.of(header, data[at : at + header.size]) in (NONE, MARKER, COMMITTED)
