"""Each kind of fault, written into a log of its own: exactly that finding, with the place that proves it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from made_logs import ABORT, COMMIT, STATES, Logs

from broker.coordinator.transactions.transaction import State
from pipeline import tables
from pipeline.audit import audit as audits
from pipeline.audit.audit import Audit, audit
from pipeline.decode.records import uuid_text
from pipeline.transforms import missing_offsets
from protocol.record_batch import build_batch

CO = "__consumer_offsets"
TOPIC_ID = b"\1" * 16
CLEANED = "cleaned-0"


class Fault(NamedTuple):
    """kind at offset of log (None: no finding), and its sentence."""

    kind: str | None
    log: str = ""
    offset: int = 0
    says: str = ""


def sound(logs: Logs) -> Fault:
    log = "sound-0"
    logs.data(log, 3)
    logs.data(log, 5, pid=1, epoch=0, sequence=0)
    logs.data(log, 5, pid=1, epoch=0, sequence=5)
    logs.data(log, 1, pid=1, epoch=1, sequence=0)
    logs.transaction("sound", 2, 0, log)
    logs.transaction("sound", 2, 0, log, kind=ABORT, sequence=2)
    logs.state(f"{STATES}-0", "sound", State.EMPTY, 2, 1)
    logs.transaction("sound", 2, 1, log)
    return Fault(None)


def sequences_wrap(logs: Logs) -> Fault:
    log = "wrap-0"
    logs.skip(log, 2**31 - 3)
    logs.data(log, 2, pid=3, epoch=0, sequence=2**31 - 3)
    logs.data(log, 4, pid=3, epoch=0, sequence=2**31 - 1)  # 2147483647, 0, 1, 2
    logs.data(log, 2, pid=3, epoch=0, sequence=3)
    return Fault(None)


def wrapped_duplicate(logs: Logs) -> Fault:
    log = "wrapdup-0"
    logs.skip(log, 2**31 - 3)
    logs.data(log, 2, pid=3, epoch=0, sequence=2**31 - 3)
    logs.data(log, 4, pid=3, epoch=0, sequence=2**31 - 1)
    place = logs.data(log, 4, pid=3, epoch=0, sequence=2**31 - 1)
    logs.data(log, 2, pid=3, epoch=0, sequence=3)
    says = "sequences 2147483647 to 2 of producer 3, epoch 0, were already appended at offset 2147483647"
    return Fault("duplicate-sequence", log, place, says)


def duplicate(logs: Logs) -> Fault:
    log = "dup-0"
    for sequence in (0, 5, 10):
        logs.data(log, 5, pid=4, epoch=0, sequence=sequence)
    place = logs.data(log, 5, pid=4, epoch=0, sequence=5)
    logs.data(log, 5, pid=4, epoch=0, sequence=15)
    says = "sequences 5 to 9 of producer 4, epoch 0, were already appended at offset 5"
    return Fault("duplicate-sequence", log, place, says)


def missing(logs: Logs) -> Fault:
    log = "missing-0"
    logs.data(log, 5, pid=5, epoch=0, sequence=0)
    place = logs.data(log, 5, pid=5, epoch=0, sequence=7)
    says = "sequences 5 to 6 of producer 5, epoch 0, are not in the log before this one: 2 records"
    return Fault("missing-sequence", log, place, says)


def made_again(logs: Logs) -> Fault:
    """A topic that was deleted and made again while its producer ran: a broker takes any first sequence. A doubt."""
    log = "again-0"
    logs.data(log, 1)
    logs.data(log, 5, pid=5, epoch=0, sequence=7)
    logs.data(log, 5, pid=5, epoch=0, sequence=12)
    return Fault(None)


def missing_in_a_new_epoch(logs: Logs) -> Fault:
    """A broker that knows the producer does not take it."""
    log = "epoch-0"
    logs.data(log, 5, pid=5, epoch=0, sequence=0)
    place = logs.data(log, 5, pid=5, epoch=1, sequence=7)
    says = "sequences 0 to 6 of producer 5, epoch 1, are not in the log before this one: 7 records"
    return Fault("missing-sequence", log, place, says)


def reordered(logs: Logs) -> Fault:
    log = "order-0"
    for sequence in (0, 2):
        logs.data(log, 1, pid=6, epoch=0, sequence=sequence)
    place = logs.data(log, 1, pid=6, epoch=0, sequence=1)
    logs.data(log, 1, pid=6, epoch=0, sequence=3)
    return Fault("reordered-sequence", log, place, "sequences 1 to 1 of producer 6, epoch 0, came after higher ones")


def stale_producer(logs: Logs) -> Fault:
    log = "zombie-0"
    logs.data(log, 2, pid=7, epoch=0, sequence=0)
    logs.data(log, 2, pid=7, epoch=1, sequence=0)
    place = logs.data(log, 2, pid=7, epoch=0, sequence=2)
    return Fault("stale-producer-epoch", log, place, "producer 7 wrote with epoch 0 after epoch 1 at offset 2")


def stale_in_transaction(logs: Logs) -> Fault:
    log = "zombietxn-0"
    logs.transaction("ztxn", 8, 3, log, data_epoch=2)
    return Fault("stale-producer-epoch", log, 0, "producer 8 wrote with epoch 2 into a transaction of epoch 3")


def left_open(producer: int, why: str) -> str:
    return f"producer {producer}, epoch 0, has records from here on without a marker: {why}"


def hanging(logs: Logs) -> Fault:
    log = "hang-0"
    logs.transaction("hang", 9, 0, log)
    place = logs.data(log, 1, pid=9, epoch=0, sequence=2, txn=True)
    return Fault("hanging-transaction", log, place, left_open(9, "its coordinator has no open transaction"))


def hanging_unknown(logs: Logs) -> Fault:
    log = "hangunknown-0"
    place = logs.data(log, 1, pid=10, epoch=0, sequence=0, txn=True)
    return Fault("hanging-transaction", log, place, left_open(10, "no coordinator has such a transaction"))


def overdue(logs: Logs) -> Fault:
    log = "overdue-0"
    logs.state(f"{STATES}-0", "overdue", State.ONGOING, 11, 0, {"overdue": [0]})
    place = logs.data(log, 1, pid=11, epoch=0, sequence=0, txn=True)
    for _ in range(12):  # a broker that runs on
        logs.tick(8_000)
        logs.state(f"{STATES}-0", "sound", State.EMPTY, 2, 1)
    return Fault("hanging-transaction", log, place, left_open(11, "it has timed out but was not aborted"))


def decided_and_not_ended(logs: Logs) -> Fault:
    log = "unended-0"
    logs.state(f"{STATES}-0", "unended", State.ONGOING, 18, 0, {"unended": [0]})
    place = logs.data(log, 1, pid=18, epoch=0, sequence=0, txn=True)
    logs.state(f"{STATES}-0", "unended", State.PREPARE_COMMIT, 18, 0, {"unended": [0]})
    for _ in range(4):
        logs.tick(8_000)
        logs.state(f"{STATES}-0", "sound", State.EMPTY, 2, 1)
    return Fault("hanging-transaction", log, place, left_open(18, "it was decided but not ended"))


def down_for_longer(logs: Logs) -> Fault:
    """A broker that was down for longer than the time-out, and ends the transactions when it is there again: doubts."""
    for pid, log in ((19, "down-0"), (20, "downdecided-0")):
        topic = log.partition("-")[0]
        logs.state(f"{STATES}-0", topic, State.ONGOING, pid, 0, {topic: [0]})
        logs.data(log, 1, pid=pid, epoch=0, sequence=0, txn=True)
    logs.state(f"{STATES}-0", "downdecided", State.PREPARE_COMMIT, 20, 0, {"downdecided": [0]})
    logs.tick(7_200_000)
    for _ in range(2):
        logs.state(f"{STATES}-0", "sound", State.EMPTY, 2, 1)
        logs.tick(9_000)
    return Fault(None)


def without_marker(logs: Logs) -> Fault:
    log = "nomarker-0"
    logs.transaction("nomarker", 12, 0, log, markers=[])
    place = logs.ends[f"{STATES}-0"] - 1
    says = "nomarker is complete, but nomarker-0 has no COMMIT marker of it"
    return Fault("transaction-without-marker", f"{STATES}-0", place, says)


def without_marker_among_others(logs: Logs) -> Fault:
    log = "nomarker2-0"
    logs.transaction("nomarker2", 13, 0, log)
    logs.transaction("nomarker2", 13, 0, log, markers=[], sequence=2)
    place = logs.ends[f"{STATES}-0"] - 1
    logs.transaction("nomarker2", 13, 0, log, sequence=4)
    says = "nomarker2 is complete, but nomarker2-0 has no COMMIT marker of it"
    return Fault("transaction-without-marker", f"{STATES}-0", place, says)


def stray_marker(logs: Logs) -> Fault:
    log = "stray-0"
    logs.data(log, 1)
    place = logs.marker(log, 14, 0)
    says = "a COMMIT marker of producer 14, epoch 0, but no coordinator had such a transaction here"
    return Fault("marker-without-transaction", log, place, says)


def resent_marker(logs: Logs) -> Fault:
    """A coordinator that crashed sends its markers again: no fault."""
    logs.transaction("twice", 15, 0, "twice-0", markers=[(0, COMMIT), (0, COMMIT)])
    return Fault(None)


def against_decision(logs: Logs) -> Fault:
    log = "against-0"
    logs.transaction("against", 16, 0, log, markers=[(0, ABORT)])
    return Fault("marker-against-decision", log, 2, "the marker says ABORT, but the coordinator decided COMMIT")


def regression(logs: Logs) -> Fault:
    log = f"{CO}-1"
    logs.classic_group(log, "back", 1)
    logs.commit(log, "back", {0: 50, 1: 9}, member="m", generation=1)
    place = logs.commit(log, "back", {0: 40, 1: 10}, member="m", generation=1)
    return Fault("offset-regression", log, place, "t-0 went back from 50 to 40")


def set_back(logs: Logs) -> Fault:
    """An operator, a deleted offset and an aborted transaction take a group back: no fault."""
    log = f"{CO}-2"
    logs.commit(log, "reset", {0: 50})
    logs.commit(log, "reset", {0: 40})
    logs.classic_group(log, "gone", 1)
    logs.commit(log, "gone", {0: 50}, member="m", generation=1)
    logs.forget(log, "gone", 0)
    logs.commit(log, "gone", {0: 10}, member="m", generation=1)
    states, name, where = f"{STATES}-0", "txoff", {CO: [2]}
    logs.state(states, name, State.ONGOING, 17, 0, where)
    logs.commit(log, "gone", {0: 90}, member="m", generation=1, pid=17, epoch=0, sequence=0)
    logs.state(states, name, State.PREPARE_ABORT, 17, 0, where)
    logs.marker(log, 17, 0, ABORT)
    logs.state(states, name, State.COMPLETE_ABORT, 17, 0)
    logs.commit(log, "gone", {0: 12}, member="m", generation=1)
    return Fault(None)


def stale_generation(logs: Logs) -> Fault:
    log = f"{CO}-3"
    logs.classic_group(log, "old", 1)
    logs.commit(log, "old", {0: 1}, member="m1", generation=1)
    logs.classic_group(log, "old", 2)
    place = logs.commit(log, "old", {0: 2}, member="m1", generation=1)
    logs.classic_group(log, "old", None)
    logs.classic_group(log, "old", 1)
    logs.commit(log, "old", {0: 3}, member="m2", generation=1)
    return Fault("stale-generation", log, place, "m1 committed in generation 1, but the group was in 2")


def stale_member(logs: Logs) -> Fault:
    """Of four commits below the member's epoch, the one for a partition that it got later."""
    log = f"{CO}-4"
    logs.consumer_group(log, "new", 9)
    logs.member(log, "new", "m", 9, {0: 5, 1: 7}, TOPIC_ID)
    said: dict[str, Any] = {"member": "m", "topic_id": TOPIC_ID}
    logs.commit(log, "new", {0: 1, 1: 1}, generation=9, **said)
    logs.commit(log, "new", {0: 2}, generation=5, **said)
    logs.commit(log, "new", {1: 2}, generation=8, **said)
    place = logs.commit(log, "new", {1: 3}, generation=6, **said)
    says = "m committed t-1 with epoch 6, but owned the partition from epoch 7 on"
    return Fault("stale-member-epoch", log, place, says)


def not_its_own(logs: Logs) -> Fault:
    log = f"{CO}-5"
    logs.consumer_group(log, "foreign", 9)
    logs.member(log, "foreign", "m", 9, {0: 5}, TOPIC_ID)
    place = logs.commit(log, "foreign", {3: 1}, generation=8, member="m", topic_id=TOPIC_ID)
    return Fault("stale-member-epoch", log, place, "m committed t-3 with epoch 8, but did not own the partition")


def epoch_of_nobody(logs: Logs) -> Fault:
    log = f"{CO}-6"
    logs.consumer_group(log, "ahead", 9)
    logs.member(log, "ahead", "m", 9, {0: 5}, TOPIC_ID)
    place = logs.commit(log, "ahead", {0: 1}, generation=10, member="m", topic_id=TOPIC_ID)
    return Fault("stale-member-epoch", log, place, "m committed t-0 with epoch 10, but had epoch 9")


def whole_commit(logs: Logs) -> Fault:
    log = f"{CO}-7"
    first = logs.commit(log, "large", {0: 1, 1: 1}, size=3)
    logs.commit(log, "large", {2: 1}, commit_id=first, size=3)
    logs.commit(log, "large", {0: 2})
    return Fault(None)


def incomplete_commit(logs: Logs) -> Fault:
    log = f"{CO}-8"
    first = logs.commit(log, "torn", {0: 1, 1: 1}, size=5)
    logs.commit(log, "torn", {2: 1}, commit_id=first, size=5)
    logs.commit(log, "torn", {0: 2})
    return Fault("incomplete-commit", log, first, "a commit of 5 records has 3")


def unfinished_commit(logs: Logs) -> Fault:
    log = f"{CO}-9"
    first = logs.commit(log, "ending", {0: 1, 1: 1}, size=3)
    says = "a commit of 3 records has 2: the log ends here, so the rest may still be written"
    return Fault("incomplete-commit", log, first, says)


def in_transaction(logs: Logs, log: str, group: str, pid: int, offset: int) -> None:
    """A committed transaction that commits one offset."""
    topic, _, index = log.rpartition("-")
    partitions = {topic: [int(index)]}
    logs.state(f"{STATES}-0", group, State.ONGOING, pid, 0, partitions)
    logs.commit(log, group, {0: offset}, member="m", generation=1, pid=pid, epoch=0, sequence=0)
    logs.state(f"{STATES}-0", group, State.PREPARE_COMMIT, pid, 0, partitions)
    logs.marker(log, pid, 0)
    logs.state(f"{STATES}-0", group, State.COMPLETE_COMMIT, pid, 0)


def committed_outside(logs: Logs) -> Fault:
    log = f"{CO}-10"
    in_transaction(logs, log, "mixed", 60, 1)
    place = logs.commit(log, "mixed", {0: 5}, member="m", generation=1)
    in_transaction(logs, log, "mixed", 60, 10)
    return Fault("commit-outside-transaction", log, place, "mixed commits t-0 in transactions, but 5 without one")


def committed_outside_on_purpose(logs: Logs) -> Fault:
    """By an operator; what the transaction had committed; before and after all transactions."""
    log = f"{CO}-11"
    logs.commit(log, "apart", {0: 1}, member="m", generation=1)
    in_transaction(logs, log, "apart", 61, 2)
    logs.commit(log, "apart", {0: 5})
    in_transaction(logs, log, "apart", 61, 6)
    logs.commit(log, "apart", {0: 6}, member="m", generation=1)
    in_transaction(logs, log, "apart", 61, 7)
    logs.commit(log, "apart", {0: 8}, member="m", generation=1)
    return Fault(None)


def without_records(logs: Logs) -> Fault:
    """By transactions v2 (KIP-890): the marker has the next epoch."""
    log, partitions = "empty-0", {"empty": [0]}
    logs.state(f"{STATES}-0", "empty", State.ONGOING, 62, 0, partitions)
    logs.state(f"{STATES}-0", "empty", State.PREPARE_COMMIT, 62, 1, partitions)
    place = logs.marker(log, 62, 1)
    logs.state(f"{STATES}-0", "empty", State.COMPLETE_COMMIT, 62, 1)
    return Fault("transaction-without-records", log, place, "empty was committed, but has no record here")


def without_records_before_kip_890(logs: Logs) -> Fault:
    """A client names partitions, and need not write there: a doubt."""
    log, partitions = "emptyv1-0", {"emptyv1": [0]}
    for state in (State.ONGOING, State.PREPARE_COMMIT):
        logs.state(f"{STATES}-0", "emptyv1", state, 63, 0, partitions)
    logs.marker(log, 63, 0)
    logs.state(f"{STATES}-0", "emptyv1", State.COMPLETE_COMMIT, 63, 0)
    return Fault(None)


def coordinator_goes_back(logs: Logs) -> Fault:
    log = f"{STATES}-3"
    logs.state(log, "back", State.EMPTY, 64, 1)
    place = logs.state(log, "back", State.EMPTY, 64, 0)
    says = "the coordinator of producer 64 took a change with epoch 0 after epoch 1"
    return Fault("stale-producer-epoch", log, place, says)


def two_owners(logs: Logs) -> Fault:
    log = f"{CO}-12"
    logs.consumer_group(log, "shared", 9)
    logs.member(log, "shared", "m1", 9, {0: 5, 1: 5}, TOPIC_ID)
    place = logs.member(log, "shared", "m2", 9, {1: 9, 2: 9}, TOPIC_ID)
    logs.member(log, "shared", "m1", 9, {0: 5}, TOPIC_ID)
    return Fault("two-owners", log, place, f"m2 got partition 1 of topic {uuid_text(TOPIC_ID)}, which m1 has")


def handed_over(logs: Logs) -> Fault:
    log = f"{CO}-13"
    logs.consumer_group(log, "handed", 9)
    logs.member(log, "handed", "m1", 9, {0: 5, 1: 5}, TOPIC_ID)
    logs.member(log, "handed", "m1", 10, {0: 5}, TOPIC_ID)
    logs.member(log, "handed", "m2", 10, {1: 10}, TOPIC_ID)
    gives = logs.member_record("handed", "m2", 11, {}, TOPIC_ID)
    takes = logs.member_record("handed", "m3", 11, {1: 11}, TOPIC_ID)
    logs.append(log, build_batch([gives, takes], timestamp_ms=logs.tick()), 2)  # at once
    return Fault(None)


def generation_back(logs: Logs) -> Fault:
    log = f"{CO}-14"
    logs.classic_group(log, "fell", 5)
    place = logs.classic_group(log, "fell", 3)
    return Fault("epoch-regression", log, place, "group fell went back from generation 5 to 3")


def group_epoch_back(logs: Logs) -> Fault:
    log = f"{CO}-15"
    logs.consumer_group(log, "fell2", 9)
    place = logs.consumer_group(log, "fell2", 8)
    return Fault("epoch-regression", log, place, "group fell2 went back from epoch 9 to 8")


def member_epoch_back(logs: Logs) -> Fault:
    log = f"{CO}-16"
    logs.consumer_group(log, "fell3", 9)
    logs.member(log, "fell3", "m7", 9, {0: 5}, TOPIC_ID)
    place = logs.member(log, "fell3", "m7", 8, {0: 5}, TOPIC_ID)
    return Fault("epoch-regression", log, place, "member m7 went back from epoch 9 to 8")


def began_again(logs: Logs) -> Fault:
    """A group and a member that were removed; a static member that has left."""
    log = f"{CO}-17"
    logs.classic_group(log, "anew", 5)
    logs.classic_group(log, "anew", None)
    logs.classic_group(log, "anew", 1)
    logs.consumer_group(log, "static", 9)
    logs.member(log, "static", "m8", 9, {0: 5}, TOPIC_ID)
    logs.member(log, "static", "m8", -2, {0: 5}, TOPIC_ID)
    logs.member(log, "static", "m8", 0, {0: 5}, TOPIC_ID)
    return Fault(None)


def leader_epoch_back(logs: Logs) -> Fault:
    log = "led-0"
    logs.data(log, 1, leader_epoch=3)
    logs.data(log, 1, leader_epoch=5)
    logs.data(log, 1, leader_epoch=5)
    place = logs.data(log, 1, leader_epoch=4)
    return Fault("leader-epoch-regression", log, place, "leader epoch 4 comes after 5")


def beyond_the_end(logs: Logs) -> Fault:
    log = f"{CO}-18"
    logs.data("reach-0", 3)
    logs.data("reach-1", 3)
    place = logs.commit(log, "beyond", {0: 4}, topic="reach", member="m", generation=1)
    logs.commit(log, "beyond", {0: 4, 1: 3}, topic="reach", member="m", generation=1)
    return Fault("commit-beyond-end", log, place, "beyond committed reach-0 at 4, but its log ends at 3")


def beyond_the_end_of_another_topic(logs: Logs) -> Fault:
    """Of a topic that was deleted, with the tombstone that a coordinator writes then, and without: a doubt."""
    log = f"{CO}-19"
    logs.commit(log, "deleted", {0: 9, 1: 9}, topic="remade", member="m", generation=1)
    logs.forget(log, "deleted", 1, topic="remade")
    logs.data("remade-0", 3)
    logs.data("remade-1", 3)
    return Fault(None)


def producer_id_twice(logs: Logs) -> Fault:
    log = f"{STATES}-4"
    logs.state(log, "owner", State.EMPTY, 65, 0)
    logs.state(log, "owner", State.EMPTY, 65, 0)
    place = logs.state(log, "thief", State.EMPTY, 65, 0)
    return Fault("producer-id-twice", log, place, "producer 65 is that of thief, and was that of owner")


def vanished(logs: Logs) -> Fault:
    log = f"{STATES}-5"
    logs.state(log, "gone", State.EMPTY, 66, 0)
    logs.state(log, "gone", State.ONGOING, 66, 0, {"vanished": [0]})
    place = logs.state(log, "gone", State.EMPTY, 66, 0)
    says = "gone of producer 66, epoch 0, was Ongoing, and then Empty"
    return Fault("transaction-vanished", log, place, says)


def overlapping(logs: Logs) -> Fault:
    log = "overlap-0"
    logs.data(log, 3)
    logs.ends[log] -= 1
    place = logs.data(log, 3)
    logs.data(log, 1)
    return Fault("overlapping-batches", log, place, "offsets 2 to 4 begin below 3")


def hole(logs: Logs) -> Fault:
    log = "hole-0"
    logs.skip(log, 2)  # removed by retention
    logs.data(log, 3)
    logs.skip(log, 1)
    place = logs.data(log, 3)
    return Fault("missing-records", log, place, "offsets 5 to 5 are not in the log, which nothing compacts")


def cleaned(logs: Logs) -> Fault:
    logs.data(CLEANED, 3)
    logs.skip(CLEANED, 2)
    logs.data(CLEANED, 3)
    return Fault(None)


CASES: list[Callable[[Logs], Fault]] = [
    sound, sequences_wrap, wrapped_duplicate, duplicate, missing, made_again, missing_in_a_new_epoch, reordered,
    stale_producer, stale_in_transaction, overdue, hanging, hanging_unknown, without_marker,
    without_marker_among_others, stray_marker, resent_marker, against_decision, regression, set_back,
    stale_generation, stale_member, not_its_own, epoch_of_nobody, whole_commit, incomplete_commit, unfinished_commit,
    committed_outside, committed_outside_on_purpose, without_records, without_records_before_kip_890,
    coordinator_goes_back, two_owners, handed_over, generation_back, group_epoch_back,
    member_epoch_back, began_again, leader_epoch_back, beyond_the_end, beyond_the_end_of_another_topic,
    producer_id_twice, vanished, overlapping, hole, cleaned, decided_and_not_ended, down_for_longer,
]  # fmt: skip  # several to a line


def audited(session: Any, directory: Path, cleaned: Collection[str] | None = None) -> Audit:
    path = str(directory)
    views = tables.raw(session, path), tables.offsets(session, path), tables.transactions(session, path)
    return audit(*views, cleaned=cleaned)


@pytest.fixture(scope="module")
def outcome(
    engine: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Fault], list[Any], dict[str, Any]]:
    """All cases in one directory, audited once, in blocks of 8 offsets: what each promised, and what was found."""
    directory = tmp_path_factory.mktemp("faults")
    logs = Logs(directory)
    promised = {case.__name__: case(logs) for case in CASES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audits, "FEW_ROWS", -1)
        patch.setattr(missing_offsets, "BLOCK_OFFSETS", 8)
        made = audited(engine, directory, {CLEANED})
    coverage = {row["log"]: row for row in made.coverage.collect()}
    assert {name: row["end_offset"] for name, row in coverage.items()} == logs.ends
    other = {"coverage": coverage, "transactions": made.transactions.collect(), "undecided": made.undecided.collect()}
    return promised, made.findings.collect(), other


@pytest.mark.parametrize("name", [case.__name__ for case in CASES if case.__name__[0] != "_"])
def test_audit_fault_in_a_log_is_exactly_that_finding(name, outcome):
    promised, found, _ = outcome
    fault = promised[name]
    here = [row for row in found if (row["log"], row["offset"]) == (fault.log, fault.offset)]
    if fault.kind is None:
        return  # the next test: nothing but what was promised
    assert [row["kind"] for row in here] == [fault.kind]
    assert here[0]["detail"] == fault.says
    assert here[0]["segment"] is not None


def test_audit_sound_logs_have_no_finding(outcome):
    promised, found, _ = outcome
    wanted = sorted((fault.kind, fault.log, fault.offset) for fault in promised.values() if fault.kind)
    assert sorted((row["kind"], row["log"], row["offset"]) for row in found) == wanted


def test_audit_what_may_have_another_reason_is_undecided_and_says_why(outcome):
    *_, other = outcome
    rows = {(row["log"], row["kind"]): (row["offset"], row["why"]) for row in other["undecided"] if row["why"]}
    assert rows == {
        (f"{CO}-19", "commit-beyond-end"): (0, "another-topic"),
        ("again-0", "missing-sequence"): (1, "unknown-producer"),
        ("down-0", "hanging-transaction"): (0, "stopped"),
        ("downdecided-0", "hanging-transaction"): (0, "stopped"),
        ("emptyv1-0", "transaction-without-records"): (0, "named-by-client"),
        ("twice-0", "transaction-without-records"): (3, "named-by-client"),
    }


@pytest.mark.parametrize(
    ("offset", "kinds"), [(40, ["offset-regression", "stale-generation"]), (50, ["stale-generation"])]
)
def test_commit_that_comes_again_after_its_group_is_empty_is_stale(engine, tmp_path, offset, kinds):
    """The last member that leaves raises the generation; the newest commit goes back nowhere."""
    logs, log = Logs(tmp_path), f"{CO}-0"
    logs.classic_group(log, "left", 1)
    for earlier in (40, 50):
        logs.commit(log, "left", {0: earlier}, member="m", generation=1)
    logs.classic_group(log, "left", 2)  # without members
    again = logs.commit(log, "left", {0: offset}, member="m", generation=1)
    found = audited(engine, tmp_path).findings.collect()
    assert [(row["kind"], row["offset"]) for row in found] == [(kind, again) for kind in kinds]
