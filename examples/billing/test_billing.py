"""The billing service: sums stay right through faults, restarts, and members that fell silent."""

from __future__ import annotations

import threading

import pytest
from invoice_samples import INVOICES, sums

COUNT = len(INVOICES)


def test_sums_are_right_and_offsets_committed(broker, make_service):
    service = make_service()
    service.work(COUNT)
    assert service.sums() == sums()
    assert broker.committed("billing") == {("invoices", 0): COUNT}


def test_commit_that_is_refused_for_a_while_is_tried_again(broker, make_service):
    refused = broker.faults.inject_error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", trigger="once")
    service = make_service()
    service.work(COUNT)
    assert refused.hits == 1
    assert service.sums() == sums()
    broker.journal.verify(api="OffsetCommit", group="billing", at_least=COUNT)


@pytest.mark.parametrize("when", ["before", "after"])
def test_service_that_dies_around_a_lost_commit_adds_no_invoice_twice(broker, make_service, when):
    lost = broker.faults.hold("OffsetCommit", when=when, trigger={"on_call": 5})
    first = make_service()
    working = threading.Thread(target=lambda: first.work(5))
    working.start()
    lost.wait_until_held()
    snapshot = broker.snapshot()  # this very moment: the sum is stored, and no client knows of the commit yet
    lost.release()
    working.join()
    first.close()
    broker.restore(snapshot)
    assert broker.committed("billing") == {("invoices", 0): 4 if when == "before" else 5}
    broker.clock.advance(seconds=46)  # the member of that time is gone
    second = make_service()
    second.work(COUNT)
    assert second.sums() == sums()


def test_commit_stopped_between_append_and_reply_is_durable(broker, make_service):
    service = make_service()
    service.work(2)
    held = broker.faults.hold("OffsetCommit", when="after", trigger="once")
    working = threading.Thread(target=lambda: service.work(3))
    working.start()
    held.wait_until_held()
    assert broker.committed("billing") == {("invoices", 0): 3}  # the service does not know it yet
    held.release()
    working.join()


@pytest.mark.momus_explore(skip="its member is expelled at one commit")
def test_zombie_is_expelled_after_45_seconds_and_told_why(broker, make_service):
    """A pause of 46 s takes milliseconds: only the broker's clock is moved."""
    service = make_service(**{"session.timeout.ms": 45_000})
    last = service.work(3)
    (member,) = broker.wait_for_group("billing", "stable", members=1)
    broker.clock.advance(seconds=46)
    assert broker.wait_for_group("billing", "empty") == []
    service.commit(last)  # it does not know yet
    assert service.refused == ["UNKNOWN_MEMBER_ID"]
    (commit,) = broker.journal.verify(api="OffsetCommit", error="UNKNOWN_MEMBER_ID", times=1)
    assert commit["why"] == f"member {member} is not in group billing, which is Empty with 0 members"
    service.work(COUNT)  # it joins again, and goes on
    assert service.sums() == sums()


def test_months_later_the_offsets_are_gone_and_everything_is_read_again(broker, make_service):
    first = make_service()
    first.work(COUNT)
    first.close()
    broker.clock.advance(days=8)
    assert broker.committed("billing") == {}
