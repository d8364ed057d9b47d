"""Faults of producers as a log has them: sequences, epochs, transactions and their markers."""

from __future__ import annotations

from audit_fault_kit import Fault
from made_logs import ABORT, COMMIT, STATES, Logs

from broker.coordinator.transactions.transaction import State


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


def without_marker_in_a_topic_made_again(logs: Logs) -> Fault:
    """The topic was deleted after the first transaction, and the producer goes on with the same epoch: a doubt."""
    for state in (State.ONGOING, State.PREPARE_COMMIT, State.COMPLETE_COMMIT):
        logs.state(f"{STATES}-0", "goeson", state, 33, 0, {"goeson": [0]})
    logs.transaction("goeson", 33, 0, "goeson-0")
    return Fault(None)


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


def producer_id_twice(logs: Logs) -> Fault:
    log = f"{STATES}-4"
    logs.state(log, "owner", State.EMPTY, 65, 0)
    logs.state(log, "owner", State.EMPTY, 65, 0)
    place = logs.state(log, "thief", State.EMPTY, 65, 0)
    return Fault("producer-id-twice", log, place, "producer 65 is that of thief, and was that of owner")
