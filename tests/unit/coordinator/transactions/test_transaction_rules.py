"""What may be done to a transaction: every state and condition with its outcome, as Kafka's tables have them."""

from __future__ import annotations

import pytest

from broker.coordinator.transactions import rules
from broker.coordinator.transactions.transaction import (
    AT_REST,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    LAST_EPOCH,
    MAX_EPOCH,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Transaction,
)
from protocol.errors import ErrorCode, KafkaError

PID, EPOCH, NOW = 7, 5, 1_000
FOLLOWS = {  # state -> the states that may come before it
    EMPTY: AT_REST,
    ONGOING: AT_REST | {ONGOING},
    PREPARE_COMMIT: {ONGOING},
    PREPARE_ABORT: AT_REST | {ONGOING},
    COMPLETE_COMMIT: {PREPARE_COMMIT},
    COMPLETE_ABORT: {PREPARE_ABORT},
}
STATES = list(FOLLOWS)
BUSY, FENCED, ILLEGAL, UNMAPPED = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)


def transaction(state=EMPTY, epoch=EPOCH, last=-1, previous=-1, following=-1, partitions=None, client_version=0):
    made = Transaction("tx", PID, 60_000)
    made.state, made.producer_epoch, made.last_producer_epoch = state, epoch, last
    made.previous_producer_id, made.next_producer_id = previous, following
    made.partitions = partitions or {}
    made.start_ms, made.updated_ms, made.client_version = 10, 20, client_version
    return made


def outcome(call, *args, **kwargs):
    """The state that follows, None, or the error."""
    try:
        made = call(*args, **kwargs)
    except KafkaError as error:
        return error.code
    except rules.NeedsProducerIdError:
        return "needs id"
    return made and made.state


def begin(before, given=None, new_id=None):
    return rules.init_producer_id(before, "tx", given, 30_000, NOW, new_id)


# -- InitProducerId


def test_init_unknown_id_gets_a_new_producer_with_epoch_0():
    assert outcome(begin, None) == "needs id"
    made = begin(None, None, 99)
    assert (made.producer_id, made.producer_epoch, made.state, made.timeout_ms) == (99, 0, EMPTY, 30_000)
    assert (made.last_producer_epoch, made.start_ms, made.updated_ms) == (-1, -1, NOW)


def test_init_unknown_id_with_a_producer_of_its_own_gets_a_new_one_all_the_same():
    made = begin(None, (3, 4), 99)
    assert (made.producer_id, made.producer_epoch) == (99, 0)


@pytest.mark.parametrize("state", sorted(AT_REST))
def test_init_again_raises_the_epoch_and_forgets_the_last(state):
    made = begin(transaction(state, last=3))
    assert (made.producer_id, made.producer_epoch, made.last_producer_epoch, made.state) == (PID, EPOCH + 1, -1, EMPTY)
    assert (made.partitions, made.start_ms) == ({}, -1)


@pytest.mark.parametrize("state", sorted(AT_REST))
def test_init_with_the_current_epoch_raises_it_and_knows_its_retry(state):
    made = begin(transaction(state), (PID, EPOCH))
    assert (made.producer_epoch, made.last_producer_epoch) == (EPOCH + 1, EPOCH)
    again = begin(made, (PID, EPOCH))
    assert (again.producer_epoch, again.last_producer_epoch) == (EPOCH + 1, EPOCH)


@pytest.mark.parametrize("given", [(PID, EPOCH - 1), (PID, EPOCH + 1), (PID + 1, EPOCH), (PID + 1, LAST_EPOCH)])
def test_init_of_a_replaced_producer_is_fenced(given):
    assert outcome(begin, transaction(), given) == FENCED


def test_init_after_another_one_without_epoch_is_fenced():
    assert outcome(begin, begin(transaction()), (PID, EPOCH)) == FENCED


@pytest.mark.parametrize("state", [PREPARE_COMMIT, PREPARE_ABORT])
@pytest.mark.parametrize("given", [None, (PID, EPOCH)])
def test_init_during_an_ending_is_told_to_wait(state, given):
    assert outcome(begin, transaction(state), given) == BUSY


def test_init_of_another_producer_during_an_ending_is_fenced_first():
    assert outcome(begin, transaction(PREPARE_COMMIT), (PID + 1, EPOCH)) == FENCED


@pytest.mark.parametrize("epoch", [LAST_EPOCH, MAX_EPOCH])
@pytest.mark.parametrize("with_epoch", [False, True])
def test_init_without_epochs_left_changes_the_producer_id(epoch, with_epoch):
    before, given = transaction(COMPLETE_COMMIT, epoch=epoch), (PID, epoch) if with_epoch else None
    assert outcome(begin, before, given) == "needs id"
    made = begin(before, given, 99)
    assert (made.producer_id, made.producer_epoch, made.previous_producer_id) == (99, 0, PID)
    assert made.last_producer_epoch == (epoch if with_epoch else -1)


def test_init_retried_after_the_producer_id_changed_is_answered_the_same():
    made = begin(transaction(epoch=LAST_EPOCH), (PID, LAST_EPOCH), 99)
    again = begin(made, (PID, LAST_EPOCH))
    assert (again.producer_id, again.producer_epoch) == (99, 0)


# -- AddPartitionsToTxn


def add(before, partitions, pid=PID, epoch=EPOCH):
    return rules.add_partitions(before, pid, epoch, partitions, NOW, 0)


@pytest.mark.parametrize("state", sorted(AT_REST))
def test_add_begins_a_transaction(state):
    made = add(transaction(state), {"a": (0, 1)})
    assert (made.state, made.partitions, made.start_ms, made.updated_ms) == (ONGOING, {"a": (0, 1)}, NOW, NOW)


def test_add_to_an_open_transaction_keeps_its_start():
    made = add(transaction(ONGOING, partitions={"a": (0,)}), {"a": (0, 2, 2), "b": (1,)})
    assert (made.partitions, made.start_ms) == ({"a": (0, 2), "b": (1,)}, 10)


def test_add_what_is_there_writes_nothing():
    before = transaction(ONGOING, partitions={"a": (0, 1), "b": (0,)})
    assert add(before, {"a": (1,), "b": (0,)}) is None


@pytest.mark.parametrize("call", [add, lambda *a, **k: rules.verify_partitions(a[0], *_who(k), a[1])])
@pytest.mark.parametrize(
    ("before", "who", "code"),
    [
        (None, {}, UNMAPPED),
        (transaction(ONGOING), {"pid": PID + 1}, UNMAPPED),
        (transaction(ONGOING), {"epoch": EPOCH - 1}, FENCED),
        (transaction(ONGOING), {"epoch": EPOCH + 1}, FENCED),
        (transaction(PREPARE_COMMIT), {"epoch": EPOCH - 1}, FENCED),
        (transaction(PREPARE_COMMIT), {}, BUSY),
        (transaction(PREPARE_ABORT), {}, BUSY),
    ],
)
def test_add_and_verify_refuse_alike(call, before, who, code):
    assert outcome(call, before, {"a": (0,)}, **who) == code


def _who(fields):
    return fields.get("pid", PID), fields.get("epoch", EPOCH)


@pytest.mark.parametrize("state", [EMPTY, ONGOING, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_verify_names_what_is_missing(state):
    before = transaction(state, partitions={"a": (0,)} if state is ONGOING else {})
    missing = rules.verify_partitions(before, PID, EPOCH, {"a": (0, 1), "b": (0,)})
    assert missing == ([] if state is ONGOING else [("a", 0)]) + [("a", 1), ("b", 0)]


# -- EndTxn, versions 0 to 4


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        (EMPTY, ILLEGAL, ILLEGAL),
        (ONGOING, PREPARE_COMMIT, PREPARE_ABORT),
        (PREPARE_COMMIT, BUSY, ILLEGAL),
        (PREPARE_ABORT, ILLEGAL, BUSY),
        (COMPLETE_COMMIT, None, ILLEGAL),
        (COMPLETE_ABORT, ILLEGAL, None),
    ],
)
def test_end_by_state(state, commit, abort):
    for wanted, expected in ((True, commit), (False, abort)):
        assert outcome(rules.end_transaction, transaction(state), PID, EPOCH, commit=wanted, now_ms=NOW) == expected


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("pid", "epoch", "code"), [(8, EPOCH, UNMAPPED), (PID, 4, FENCED), (PID, 6, FENCED)])
def test_end_of_another_producer_is_refused_in_every_state(state, pid, epoch, code):
    assert outcome(rules.end_transaction, transaction(state), pid, epoch, commit=True, now_ms=NOW) == code
    assert outcome(rules.end_transaction, None, pid, epoch, commit=True, now_ms=NOW) == UNMAPPED


def test_end_keeps_the_epoch_and_the_partitions():
    made = rules.end_transaction(transaction(ONGOING, partitions={"a": (0,)}), PID, EPOCH, commit=True, now_ms=NOW)
    assert (made.producer_epoch, made.partitions, made.start_ms) == (EPOCH, {"a": (0,)}, 10)


# -- EndTxn, version 5

CURRENT, RETRY = EPOCH, EPOCH - 1


@pytest.mark.parametrize(
    ("state", "epoch", "commit", "abort"),
    [
        (EMPTY, CURRENT, ILLEGAL, PREPARE_ABORT),
        (EMPTY, RETRY, FENCED, FENCED),
        (ONGOING, CURRENT, PREPARE_COMMIT, PREPARE_ABORT),
        (ONGOING, RETRY, FENCED, FENCED),
        (COMPLETE_COMMIT, CURRENT, ILLEGAL, PREPARE_ABORT),
        (COMPLETE_COMMIT, RETRY, None, ILLEGAL),
        (COMPLETE_ABORT, CURRENT, ILLEGAL, PREPARE_ABORT),
        (COMPLETE_ABORT, RETRY, ILLEGAL, None),
        (PREPARE_COMMIT, CURRENT, FENCED, FENCED),
        (PREPARE_COMMIT, RETRY, BUSY, ILLEGAL),
        (PREPARE_ABORT, CURRENT, FENCED, FENCED),
        (PREPARE_ABORT, RETRY, ILLEGAL, BUSY),
        *((state, epoch, FENCED, FENCED) for state in STATES for epoch in (EPOCH - 2, EPOCH + 1)),
    ],
)
def test_end_v2_by_state_and_epoch(state, epoch, commit, abort):
    for wanted, expected in ((True, commit), (False, abort)):
        assert outcome(rules.end_transaction_v2, transaction(state), PID, epoch, commit=wanted, now_ms=NOW) == expected


@pytest.mark.parametrize("state", STATES)
def test_end_v2_of_another_producer_is_refused_in_every_state(state):
    assert outcome(rules.end_transaction_v2, transaction(state), 8, EPOCH, commit=True, now_ms=NOW) == UNMAPPED
    assert outcome(rules.end_transaction_v2, None, PID, EPOCH, commit=True, now_ms=NOW) == UNMAPPED


def test_end_v2_raises_the_epoch():
    before = transaction(ONGOING, partitions={"a": (0,)})
    made = rules.end_transaction_v2(before, PID, EPOCH, commit=True, now_ms=NOW)
    assert (made.producer_epoch, made.last_producer_epoch, made.client_version) == (EPOCH + 1, EPOCH, 2)
    assert (made.partitions, made.start_ms, made.next_producer_id) == ({"a": (0,)}, 10, -1)
    done = rules.complete(made, NOW + 1)
    assert (done.producer_id, done.producer_epoch, done.state, done.partitions) == (PID, EPOCH + 1, COMPLETE_COMMIT, {})


def test_end_v2_aborting_nothing_starts_then():
    made = rules.end_transaction_v2(transaction(EMPTY), PID, EPOCH, commit=False, now_ms=NOW)
    assert (made.start_ms, made.partitions) == (NOW, {})


def test_end_v2_without_epochs_left_goes_on_with_another_producer_id():
    before = transaction(ONGOING, epoch=LAST_EPOCH, partitions={"a": (0,)})
    assert outcome(rules.end_transaction_v2, before, PID, LAST_EPOCH, commit=True, now_ms=NOW) == "needs id"
    made = rules.end_transaction_v2(before, PID, LAST_EPOCH, commit=True, now_ms=NOW, new_producer_id=99)
    assert (made.producer_id, made.producer_epoch, made.next_producer_id) == (PID, MAX_EPOCH, 99)
    assert outcome(rules.end_transaction_v2, made, PID, LAST_EPOCH, commit=True, now_ms=NOW) == BUSY
    done = rules.complete(made, NOW)
    assert (done.producer_id, done.producer_epoch, done.previous_producer_id, done.next_producer_id) == (99, 0, PID, -1)
    # its retry, with the id and epoch from before
    assert outcome(rules.end_transaction_v2, done, PID, LAST_EPOCH, commit=True, now_ms=NOW) is None
    assert outcome(rules.end_transaction_v2, done, PID, LAST_EPOCH, commit=False, now_ms=NOW) == ILLEGAL
    assert outcome(rules.end_transaction_v2, done, PID, LAST_EPOCH - 1, commit=True, now_ms=NOW) == UNMAPPED


# -- aborting in the name of nobody


@pytest.mark.parametrize("version", [0, 1, 2])
def test_fence_aborts_with_an_epoch_the_producer_does_not_know(version):
    made = rules.fence(transaction(ONGOING, partitions={"a": (0,)}), NOW, transaction_version=version)
    assert (made.state, made.producer_epoch, made.partitions) == (PREPARE_ABORT, EPOCH + 1, {"a": (0,)})
    assert made.last_producer_epoch == (EPOCH if version == 2 else -1)
    assert rules.complete(made, NOW).producer_epoch == EPOCH + 1


@pytest.mark.parametrize("client_version", [0, 1, 2])
def test_fence_before_v2_forgets_what_v2_has_noted(client_version):
    before = transaction(ONGOING, last=EPOCH - 1, following=88, client_version=client_version)
    made = rules.fence(before, NOW, transaction_version=1)
    noted = made.state, made.producer_epoch, made.last_producer_epoch, made.next_producer_id, made.client_version
    assert noted == (PREPARE_ABORT, EPOCH + 1, -1, -1, 0)
    made = rules.fence(before, NOW, transaction_version=2)
    noted = made.state, made.producer_epoch, made.last_producer_epoch, made.next_producer_id, made.client_version
    assert noted == (PREPARE_ABORT, EPOCH + 1, EPOCH, -1, 2)


def test_fence_of_the_last_epoch_uses_the_one_kept_for_it():
    made = rules.fence(transaction(ONGOING, epoch=LAST_EPOCH), NOW, transaction_version=1)
    assert (made.producer_epoch, made.next_producer_id) == (MAX_EPOCH, -1)
    assert outcome(begin, rules.complete(made, NOW)) == "needs id"


def test_fence_of_the_last_epoch_goes_on_with_another_producer_id_in_v2():
    before = transaction(ONGOING, epoch=LAST_EPOCH)
    with pytest.raises(rules.NeedsProducerIdError):
        rules.fence(before, NOW, transaction_version=2)
    made = rules.fence(before, NOW, transaction_version=2, new_producer_id=99)
    done = rules.complete(made, NOW)
    assert (made.producer_epoch, done.producer_id, done.producer_epoch) == (MAX_EPOCH, 99, 0)


def test_fence_of_an_epoch_beyond_the_last_does_not_overflow():
    for version in (1, 2):
        before = transaction(ONGOING, epoch=MAX_EPOCH)
        made = rules.fence(before, NOW, transaction_version=version, new_producer_id=99)
        assert made.producer_epoch == MAX_EPOCH


@pytest.mark.parametrize(("prepared", "done"), [(PREPARE_COMMIT, COMPLETE_COMMIT), (PREPARE_ABORT, COMPLETE_ABORT)])
def test_complete_follows_what_was_prepared(prepared, done):
    made = rules.complete(transaction(prepared, partitions={"a": (0,)}), NOW)
    assert (made.state, made.partitions, made.start_ms, made.updated_ms) == (done, {}, 10, NOW)


def test_complete_of_an_older_client_keeps_the_producer_id():
    made = rules.complete(transaction(PREPARE_ABORT, following=99, client_version=0), NOW)
    assert (made.producer_id, made.next_producer_id) == (PID, -1)


def test_every_step_is_one_the_table_of_states_allows():
    for state in STATES:
        before = transaction(state)
        steps = [
            lambda b=before: begin(b),
            lambda b=before: add(b, {"z": (0,)}),
            *(
                lambda b=before, c=commit, end=end: end(b, PID, EPOCH, commit=c, now_ms=NOW)
                for commit in (True, False)
                for end in (rules.end_transaction, rules.end_transaction_v2)
            ),
        ]
        if state in (PREPARE_COMMIT, PREPARE_ABORT):
            steps.append(lambda b=before: rules.complete(b, NOW))
        if state is ONGOING:
            steps += [
                lambda b=before, v=v: rules.fence(b, NOW, transaction_version=v, new_producer_id=9) for v in (1, 2)
            ]
        for step in steps:
            after = outcome(step)
            if after is not None and not isinstance(after, ErrorCode):
                assert state in FOLLOWS[after], (state, after)
