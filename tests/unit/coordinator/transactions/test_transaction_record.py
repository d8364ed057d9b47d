"""A transaction's record: Kafka's bytes, and a shard that is the same after replaying them."""

from __future__ import annotations

import pytest

from broker.base.context import Context
from broker.coordinator.transactions import record_layout
from broker.coordinator.transactions import transaction as transaction_module
from broker.coordinator.transactions.machine import EXPIRY_TIMER, TransactionMachine
from broker.coordinator.transactions.transaction import (
    COMPLETE_COMMIT,
    EMPTY,
    MOST_KEPT,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Transaction,
    decode_transaction,
    transaction_key,
)
from protocol.codegen import codec
from protocol.messages.coordinator_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    decode_transaction_record,
)
from protocol.record_batch import build_batch

DAY_MS = 86_400_000
NOW = 1_700_000_000_000


class Config:
    transactional_id_expiration_ms = 7 * DAY_MS
    transaction_remove_expired_transaction_cleanup_interval_ms = 3_600_000


class Host:
    def __init__(self):
        self.resumed, self.aborted = [], []

    def resume(self, index, prepared):
        self.resumed += [transaction.transactional_id for transaction in prepared]

    def abort(self, index, transaction):
        self.aborted.append(transaction.transactional_id)


def shard(host=None):
    return TransactionMachine(0, Config(), host or Host())


def transaction(name="tx", state=ONGOING, partitions=None, **fields):
    made = Transaction(name, 1234, 60_000)
    made.state, made.producer_epoch, made.partitions = state, 3, partitions or {}
    made.start_ms, made.updated_ms = NOW, NOW + 5
    for field, value in fields.items():
        setattr(made, field, value)
    return made


MANY = {"a": tuple(range(300)), "t" * 200: (7,), "ünï": (2**31 - 1, 0)}


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "made",
    [
        transaction(state=EMPTY, start_ms=-1),
        transaction(state=EMPTY, previous_producer_id=9),
        transaction(partitions={"a": (0,)}),
        transaction(partitions=MANY, previous_producer_id=1234, client_version=2),
        transaction(partitions={"a": (0,)}, previous_producer_id=1234, next_producer_id=77, client_version=2),
        transaction(state=COMPLETE_COMMIT, previous_producer_id=1234),
    ],
)
def test_record_is_what_the_schema_says(made, version):
    value = made.encode(version)
    expected = TransactionLogValue(
        producer_id=1234,
        previous_producer_id=made.previous_producer_id,
        next_producer_id=made.next_producer_id,
        producer_epoch=3,
        transaction_timeout_ms=60_000,
        transaction_status=made.state,
        transaction_partitions=None
        if made.state is EMPTY
        else [PartitionsSchema(topic=topic, partition_ids=list(ids)) for topic, ids in made.partitions.items()],
        transaction_last_update_timestamp_ms=NOW + 5,
        transaction_start_timestamp_ms=made.start_ms,
        client_transaction_version=made.client_version,
    )
    assert value == version.to_bytes(2, "big") + codec(TransactionLogValue, version).encode(expected)
    key, _ = decode_transaction_record(made.key, value)
    assert key == TransactionLogKey(transactional_id="tx")
    again = decode_transaction(made.key, value)
    if version == 1:
        assert again.facts() == made.facts()
    else:  # it has no room for the ids before and after
        assert (again.producer_id, again.state, again.partitions) == (1234, made.state, made.partitions)


def test_record_follows_the_partitions_that_are_added():
    made = transaction(partitions={"a": (0,)})
    first = made.encode(1)
    following = made.next(ONGOING, NOW)
    following.add({"a": (1,)})
    assert decode_transaction(made.key, following.encode(1)).partitions == {"a": (0, 1)}
    assert decode_transaction(made.key, first).partitions == {"a": (0,)}


def replayed(log):
    again = shard()
    for offset, (key, value) in enumerate(log):
        again.replay(key, value, offset)
    return again


def test_replayed_shard_is_the_live_one():
    live, log = shard(), []
    for state in (EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, ONGOING, PREPARE_ABORT):
        for name in ("x", "y"):
            made = transaction(name, state, {"a": (1,)} if state in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT) else {})
            made.previous_producer_id = 1234
            live.replay_transaction(made)
            log.append((made.key, made.encode(1)))
            assert replayed(log).fingerprint() == live.fingerprint()


def test_tombstone_forgets_the_id_and_unknown_records_are_passed_over():
    live = shard()
    live.replay_transaction(transaction())
    live.replay(b"\x03\xe9" + b"\x00\x02tx", b"\x00\x00", 1)
    live.replay(None, b"?", 2)
    assert list(live.transactions) == ["tx"]
    live.replay(transaction_key("tx"), None, 3)
    assert not live.transactions


# -- timers


def context(now_ms=NOW):
    return Context(now_ms, None)


def test_loading_resumes_what_was_decided_and_times_what_is_open():
    host = Host()
    live = shard(host)
    for name, state in (("a", PREPARE_COMMIT), ("b", ONGOING), ("c", EMPTY), ("d", PREPARE_ABORT)):
        made = transaction(name, state)
        live.replay(made.key, made.encode(1), 0)
    result = live.on_load(context())
    assert sorted(host.resumed) == ["a", "d"]
    assert dict(result.timers) == {EXPIRY_TIMER: NOW + 3_600_000, "b": NOW + 60_001}


def test_timer_aborts_only_what_is_open():
    host = Host()
    live = shard(host)
    live.replay_transaction(transaction())
    live.on_timer("tx", context())
    assert host.aborted == ["tx"]
    made = transaction(state=PREPARE_COMMIT)
    live.replay_transaction(made)
    live.on_timer("tx", context())
    live.on_timer("gone", context())
    assert host.aborted == ["tx"]
    assert live.timer(made) == ("tx", None)


def test_two_phase_commit_never_times_out():
    assert shard().timer(transaction(timeout_ms=2**31 - 1)) == ("tx", None)


@pytest.mark.parametrize("state", [EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT])
@pytest.mark.parametrize("age_ms", [7 * DAY_MS - 1, 7 * DAY_MS])
def test_expiry_takes_ids_at_rest_that_nobody_used(state, age_ms):
    live = shard()
    live.replay(transaction(state=state).key, transaction(state=state).encode(1), 0)
    result = live.on_timer(EXPIRY_TIMER, context(NOW + 5 + age_ms))
    expired = age_ms >= 7 * DAY_MS and state in (EMPTY, COMPLETE_COMMIT)
    assert result.records == ([(transaction_key("tx"), None)] if expired else [])
    assert result.timers == [(EXPIRY_TIMER, NOW + 5 + age_ms + 3_600_000)]


def test_expiry_goes_through_many_ids_in_slices():
    live = shard()
    for number in range(5_000):
        made = transaction(f"tx-{number}", EMPTY)
        live.replay(made.key, made.encode(1), number)
    late, slices = context(NOW + 8 * DAY_MS), 0
    while live.transactions:
        result = live.on_timer(EXPIRY_TIMER, late)
        for offset, (key, value) in enumerate(result.records):
            live.replay(key, value, offset)
        slices += 1
    assert slices == 3
    assert result.timers == [(EXPIRY_TIMER, NOW + 8 * DAY_MS + 3_600_000)]


@pytest.mark.parametrize("groups", [0, 1, 3, 100])
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "ids",
    [
        {},
        {"previous_producer_id": 1234},
        {"previous_producer_id": 9, "client_version": 1},
        {"previous_producer_id": 1234, "client_version": 2},
        {"previous_producer_id": 1234, "next_producer_id": 77, "client_version": 2},
    ],
)
@pytest.mark.parametrize("state", [EMPTY, ONGOING, COMPLETE_COMMIT])
def test_batch_is_what_record_batch_would_make(groups, version, ids, state):
    made = transaction(state=state, partitions=MANY if state is ONGOING else {}, **ids)
    more = [(str(n), b"key-%d" % n, b"v" * n) for n in range(groups)]
    expected = build_batch(
        [(made.key, made.encode(version)), *((key, value) for _, key, value in more)],
        base_offset=77,
        leader_epoch=3,
        timestamp_ms=NOW,
    )
    assert made.batch(version, 77, 3, NOW, more) == expected


def test_sums_of_partitions_are_kept_up_to_a_bound(monkeypatch):
    kept = {}
    monkeypatch.setattr(transaction_module, "_sums", kept)
    before = {"a": (0,)}
    added = [{"a": (number,)} for number in range(1, MOST_KEPT + 2)]

    def add(more):
        made = transaction(partitions=before)
        made.add(more)
        return made.partitions

    sums = [add(more) for more in added[:-1]]
    assert sums == [{"a": (0, number)} for number in range(1, MOST_KEPT + 1)]
    assert len(kept) == MOST_KEPT
    assert all(add(more) is known for more, known in zip(added, sums, strict=False))
    assert add(added[-1]) == {"a": (0, MOST_KEPT + 1)}
    assert len(kept) == 1


def test_layouts_of_records_are_kept_up_to_a_bound(monkeypatch):
    kept = {}
    for module in (transaction_module, record_layout):
        monkeypatch.setattr(module, "layouts", kept)
    for size in range(1, MOST_KEPT + 2):
        made = transaction("t" * size, COMPLETE_COMMIT, previous_producer_id=1234)
        assert made.batch(1, 0, 0, NOW) == made.batch(1, 0, 0, NOW)
        assert len(kept) == (size if size <= MOST_KEPT else 1)
