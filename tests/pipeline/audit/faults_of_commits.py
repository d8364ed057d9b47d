"""Faults of committed offsets as a log has them: who committed what, of which generation, in which transaction."""

from __future__ import annotations

from typing import Any

from audit_fault_kit import CO, TOPIC_ID, Fault, in_transaction
from made_logs import ABORT, STATES, Logs

from broker.coordinator.transactions.transaction import State


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
