"""Cases that rest on two logs and the brokers' clocks: found beyond the margin, undecided below it, else nothing.

All cases are written into one directory and audited once. Each says what its logs must give, and the proofs of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from audit_fault_kit import audited, in_transaction
from made_logs import ABORT, STATES, Logs

from broker.coordinator.transactions.transaction import State
from protocol.record_batch import LOG_APPEND_TIME, TRANSACTIONAL, build_batch

CO = "__consumer_offsets"
LATE_MS, SOON_MS = 12_000, 8_000  # more and less than pipeline.audit.transactions.GRACE_S
STALE, OUTSIDE, HANGING = "stale-producer-epoch", "commit-outside-transaction", "hanging-transaction"
EMPTY, NO_MARKER = "transaction-without-records", "transaction-without-marker"


class Case(NamedTuple):
    """kind, log, offset, log and offset of the proof; found: by no missing record to be explained.

    says: its sentence, if it is not in faults_of_*.py as well.
    """

    kind: str
    log: str
    offset: int
    proof: tuple[str | None, int | None] = (None, None)
    found: bool = True
    says: str | None = None


class Clocked(Logs):
    """With a coordinator's log for each case, so that what is written there is seen alone."""

    def fence(self, states: str, name: str, pid: int, epoch: int) -> int:
        return self.state(states, name, State.EMPTY, pid, epoch)

    def pending(self, log: str, group: str, pid: int, epoch: int = 0) -> int:
        return self.commit(log, group, {0: 5}, pid=pid, epoch=epoch, sequence=0)

    def dated(self, log: str, pid: int, epoch: int) -> int:
        """Data that the broker has dated (LogAppendTime)."""
        made = build_batch(
            [(b"k", b"v")],
            timestamp_ms=self.tick(),
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=0,
            attributes=TRANSACTIONAL | LOG_APPEND_TIME,
        )
        return self.append(log, made, 1)


def fenced(logs: Clocked) -> list[Case]:
    """The proof is the first record of the first newer epoch, of several."""
    log, states = f"{CO}-20", f"{STATES}-20"
    logs.fence(states, "fenced", 70, 0)
    proof = logs.fence(states, "fenced", 70, 1)
    logs.fence(states, "fenced", 70, 1)
    logs.fence(states, "fenced", 70, 2)
    logs.tick(LATE_MS)
    place = logs.pending(log, "fenced", 70)
    says = "producer 70 wrote with epoch 0 after its coordinator had raised it to 1"
    return [Case(STALE, log, place, (states, proof), says=says), Case(HANGING, log, place)]


def fenced_just_before(logs: Clocked) -> list[Case]:
    log, states = f"{CO}-21", f"{STATES}-21"
    proof = logs.fence(states, "justbefore", 71, 1)
    logs.tick(SOON_MS)
    place = logs.pending(log, "justbefore", 71)
    return [Case(STALE, log, place, (states, proof), found=False), Case(HANGING, log, place)]


def fenced_later(logs: Clocked) -> list[Case]:
    log, states = f"{CO}-22", f"{STATES}-22"
    place = logs.pending(log, "later", 72)
    logs.tick(LATE_MS)
    logs.fence(states, "later", 72, 1)
    return [Case(HANGING, log, place)]


def dated_by_its_client(logs: Clocked) -> list[Case]:
    """A producer's clock says nothing of when the broker took its records."""
    log, states = "client-0", f"{STATES}-23"
    logs.fence(states, "client", 73, 1)
    logs.tick(LATE_MS)
    place = logs.data(log, 1, 73, 0, 0, txn=True)
    return [Case(HANGING, log, place)]


def dated_by_the_broker(logs: Clocked) -> list[Case]:
    log, states = "broker-0", f"{STATES}-24"
    proof = logs.fence(states, "broker", 74, 1)
    logs.tick(LATE_MS)
    place = logs.dated(log, 74, 0)
    return [Case(STALE, log, place, (states, proof)), Case(HANGING, log, place)]


def on_its_way(logs: Clocked) -> list[Case]:
    """Transactions v2: the epoch is raised with the decision, and the marker came after a slow commit of before."""
    log, states, where = f"{CO}-25", f"{STATES}-25", {CO: [25]}
    logs.state(states, "slow", State.ONGOING, 75, 0, where)
    logs.state(states, "slow", State.PREPARE_COMMIT, 75, 1, where)
    logs.tick(LATE_MS)
    logs.pending(log, "slow", 75)
    logs.marker(log, 75, 1)
    logs.state(states, "slow", State.COMPLETE_COMMIT, 75, 1)
    return []


def taken_along(logs: Clocked) -> list[Case]:
    return _before_its_transaction(logs, 26, LATE_MS)


def taken_along_just_before(logs: Clocked) -> list[Case]:
    return _before_its_transaction(logs, 27, SOON_MS)


def _before_its_transaction(logs: Clocked, number: int, ms: int) -> list[Case]:
    log, states, where = f"{CO}-{number}", f"{STATES}-{number}", {CO: [number]}
    place = logs.pending(log, f"along{number}", number)
    logs.tick(ms)
    logs.state(states, f"taker{number}", State.ONGOING, number, 0, where)
    proof = logs.state(states, f"taker{number}", State.PREPARE_COMMIT, number, 0, where)
    logs.marker(log, number, 0)
    logs.state(states, f"taker{number}", State.COMPLETE_COMMIT, number, 0)
    says = f"t-0 of group along{number} was committed {ms + 1} ms before the transaction of taker{number} that ended it"
    return [Case(OUTSIDE, log, place, (states, proof), ms > SOON_MS, f"{says} began")]


def nobody_named(logs: Clocked) -> list[Case]:
    """As Apache Kafka writes commits: whether a member or an operator made the one between cannot be known."""
    log = f"{CO}-28"
    in_transaction(logs, log, "nobody", 28, 1)
    logs.commit(log, "nobody", {0: 5})
    in_transaction(logs, log, "nobody", 28, 10)
    return []


def left_open(logs: Clocked) -> list[Case]:
    log = "open-0"
    place = logs.data(log, 1, 79, 0, 0, txn=True)
    logs.data(log, 1, 79, 0, 1, txn=True)
    return [Case(HANGING, log, place)]


def decided_and_left_open(logs: Clocked) -> list[Case]:
    log, states, where = "decided-0", f"{STATES}-31", {"decided": [0]}
    logs.state(states, "decided", State.ONGOING, 90, 3, where)
    place = logs.data(log, 1, 90, 3, 0, txn=True)
    logs.state(states, "decided", State.PREPARE_COMMIT, 90, 3, where)
    for _ in range(3):  # a broker that runs on
        logs.tick(SOON_MS)
        logs.fence(states, "later91", 91, 0)
    says = "producer 90, epoch 3, has records from here on without a marker: it was decided but not ended"
    return [Case(HANGING, log, place, says=says)]


def named_and_not_written(logs: Clocked) -> list[Case]:
    """Of transactions v1: their clients name partitions before they write."""
    return [_named(logs, "named1", 80, 0, found=False)]


def named_after_what_is_missing(logs: Clocked) -> list[Case]:
    """What was removed before the producer's last marker cannot be this transaction's."""
    log = "named2-0"
    logs.skip(log, 7)
    logs.transaction("named2", 81, 0, log, markers=[(0, ABORT)], kind=ABORT)
    return [_named(logs, "named2", 81, 1, found=True)]


def named_where_records_are_missing(logs: Clocked) -> list[Case]:
    logs.skip("named3-0", 7)
    return [_named(logs, "named3", 82, 1, found=False)]


def named_and_aborted(logs: Clocked) -> list[Case]:
    _named(logs, "named4", 83, 1, found=True, ends=(State.PREPARE_ABORT, State.COMPLETE_ABORT))
    return []


def _named(
    logs: Clocked, name: str, pid: int, step: int, *, found: bool,
    ends: tuple[State, State] = (State.PREPARE_COMMIT, State.COMPLETE_COMMIT),
) -> Case:  # fmt: skip  # several to a line
    """A transaction without a record. step: by how much the decision raises the epoch, 1 with transactions v2."""
    states, where = f"{STATES}-{pid}", {name: [0]}
    logs.state(states, name, State.ONGOING, pid, 1, where)
    proof = logs.state(states, name, ends[0], pid, 1 + step, where)
    place = logs.marker(f"{name}-0", pid, 1 + step, ABORT if ends[0] is State.PREPARE_ABORT else 1)
    logs.state(states, name, ends[1], pid, 1 + step)
    return Case(EMPTY, f"{name}-0", place, (states, proof), found)


def marker_that_may_be_missing(logs: Clocked) -> list[Case]:
    """Of transactions v1, before data that are there as well: they may be those of a later transaction."""
    log, states = "unmarked-0", f"{STATES}-84"
    logs.skip(log, 3)
    logs.transaction("unmarked", 84, 0, log, markers=[], states=states)
    return [Case(NO_MARKER, states, logs.ends[states] - 1, (log, 3), found=False)]


CASES: list[Callable[[Clocked], list[Case]]] = [
    fenced, fenced_just_before, fenced_later, dated_by_its_client, dated_by_the_broker, on_its_way, taken_along,
    taken_along_just_before, nobody_named, left_open, decided_and_left_open, named_and_not_written,
    named_after_what_is_missing, named_where_records_are_missing, named_and_aborted, marker_that_may_be_missing,
]  # fmt: skip  # several to a line


@pytest.fixture(scope="module")
def outcome(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[Case]], list[Any], list[Any]]:
    """What each case promised, the rows of `findings` and `undecided`, those of `unnamed`."""
    logs = Clocked(tmp_path_factory.mktemp("clocks"))
    promised = {case.__name__: case(logs) for case in CASES}
    logs.forget(f"{CO}-30", "forgotten", 0)
    logs.commit(f"{CO}-30", "signed", {0: 1}, member="m", generation=1)
    made = audited(spark, logs.directory)
    rows = [_case(row, found=True) for row in made.findings.collect()]
    return promised, rows + [_case(row, found=False) for row in made.undecided.collect()], made.unnamed.collect()


def _case(row: Any, *, found: bool) -> Case:
    return Case(row["kind"], row["log"], row["offset"], (row["proof_log"], row["proof_offset"]), found, row["detail"])


@pytest.mark.parametrize("name", [case.__name__ for case in CASES])
def test_case_by_clocks_is_found_or_undecided_at_its_place(name, outcome):
    promised, rows, _ = outcome
    for wanted in promised[name]:
        here = [row for row in rows if row[:3] == wanted[:3]]
        assert [row.found for row in here] == [wanted.found]
        assert wanted.kind == HANGING or here[0].proof == wanted.proof
        assert wanted.says in (None, here[0].says)


def test_nothing_but_the_cases_is_found_or_undecided(outcome):
    promised, rows, _ = outcome
    wanted = sorted(case[:3] for cases in promised.values() for case in cases)
    assert sorted(row[:3] for row in rows) == wanted


def test_groups_whose_commits_name_a_member_or_are_gone_can_be_decided(outcome):
    _, _, unnamed = outcome
    silent = {"fenced", "justbefore", "later", "slow", "along26", "along27", "nobody"}
    assert {row["group"] for row in unnamed} == silent
