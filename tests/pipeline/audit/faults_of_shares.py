"""Faults of share groups as a log has them: records delivered again, too often, never, or passed by."""

from __future__ import annotations

from collections.abc import Callable

from made_logs import ABORT, COMMIT
from share_logs_kit import STATE, Fault, ShareLogs
from test_share_walk import ACKNOWLEDGED, ARCHIVED, ARCHIVING, AVAILABLE, snapshot, update


def again(logs: ShareLogs) -> Fault:
    key = logs.topic("again")
    logs.write(snapshot(key=key))
    logs.write((None, b"of no group"))
    before = logs.write(update(0, (0, 4, ACKNOWLEDGED, 1), key=key))
    logs.roll(STATE)
    place = logs.write(update(0, (2, 2, ACKNOWLEDGED, 2), key=key))
    logs.write(update(0, (5, 5, ACKNOWLEDGED, 2), key=key))
    says = "record 2 is acknowledged at delivery 2, but was acknowledged at delivery 1"
    return Fault("share-delivered-again", place, says, before)


def again_behind_a_gap(logs: ShareLogs) -> Fault:
    key = logs.topic("again2")
    logs.write(snapshot(key=key))
    before = logs.write(update(0, (0, 4, ACKNOWLEDGED, 1), key=key))
    logs.skip(STATE, 2)
    place = logs.write(update(0, (2, 2, ACKNOWLEDGED, 2), key=key))
    says = "record 2 is acknowledged at delivery 2, but was acknowledged at delivery 1"
    return Fault("share-delivered-again", place, says, before, lost=2)


def beyond_its_own_limit(logs: ShareLogs) -> Fault:
    key = logs.topic("limited")
    logs.limit("limited", "3")
    logs.write(snapshot(key=key))
    logs.write(update(0, (0, 4, AVAILABLE, 3), key=key))
    says = "records 0 to 1 came to delivery 4, the limit is 3"
    return Fault("share-delivery-limit", logs.write(update(0, (0, 1, ACKNOWLEDGED, 4), key=key)), says)


def within_a_limit_that_was_lowered(logs: ShareLogs) -> Fault:
    key = logs.topic("lowered")
    logs.limit("lowered", "8")
    logs.write(snapshot(key=key))
    logs.limit("lowered", "3")
    logs.write(update(0, (0, 4, AVAILABLE, 8), key=key))
    return Fault(None)


def within_the_limit_before_a_setting(logs: ShareLogs) -> Fault:
    """Of one partition; the group's other one is younger than the setting."""
    key = logs.topic("lateset")
    logs.write(snapshot(key=key))
    logs.limit("lateset", "3")
    logs.write(update(0, (0, 4, ARCHIVED, 10), key=key))
    logs.write(snapshot(key=key._replace(partition=1)))
    return Fault(None)


def within_the_limit_after_a_setting(logs: ShareLogs) -> Fault:
    key = logs.topic("unset")
    logs.limit("unset", "3")
    logs.write(snapshot(key=key))
    logs.limit("unset", None)
    logs.write(update(0, (0, 4, ARCHIVED, 10), key=key))
    return Fault(None)


def beyond_all_limits(logs: ShareLogs) -> Fault:
    key = logs.topic("default")
    logs.write(snapshot(key=key))
    says = "records 0 to 4 came to delivery 11, the limit is 10"
    return Fault("share-delivery-limit", logs.write(update(0, (0, 4, ARCHIVED, 11), key=key)), says)


def never_delivered(logs: ShareLogs) -> Fault:
    key = logs.topic("never")
    logs.write(snapshot(key=key))
    says = "records 7 to 8 are archived, but never came to a consumer"
    return Fault("share-unread", logs.write(update(0, (7, 8, ARCHIVED, 0), key=key)), says)


def dead_letters(logs: ShareLogs) -> Fault:
    """Rejected, written to the queue and archived; then some that Kafka could not archive. The start passes all."""
    key = logs.topic("letters")
    logs.data("letters-0", 10)
    logs.write(snapshot(key=key))
    logs.write(update(0, (0, 4, ARCHIVING, 1), (5, 9, ARCHIVING, 2), key=key))
    logs.write(update(5, (0, 4, ARCHIVED, 1), key=key))
    logs.write(update(10, key=key))
    return Fault(None)


def dead_letter_delivered_again(logs: ShareLogs) -> Fault:
    key = logs.topic("letters2")
    logs.write(snapshot(key=key))
    before = logs.write(update(0, (0, 4, ARCHIVING, 1), key=key))
    place = logs.write(update(0, (1, 2, ACKNOWLEDGED, 2), key=key))
    says = "records 1 to 2 are acknowledged at delivery 2, but were on the way to a dead-letter queue at delivery 1"
    return Fault("share-delivered-again", place, says, before)


def dead_letter_never_delivered(logs: ShareLogs) -> Fault:
    key = logs.topic("letters3")
    logs.write(snapshot(key=key))
    says = "record 7 is on the way to a dead-letter queue, but never came to a consumer"
    return Fault("share-unread", logs.write(update(0, (7, 7, ARCHIVING, 0), key=key)), says)


def dead_letter_beyond_the_limit(logs: ShareLogs) -> Fault:
    key = logs.topic("letters4")
    logs.limit("letters4", "2")
    logs.write(snapshot(key=key))
    logs.write(update(0, (0, 0, ARCHIVING, 2), key=key))
    says = "record 1 came to delivery 3, the limit is 2"
    return Fault("share-delivery-limit", logs.write(update(0, (1, 1, ARCHIVING, 3), key=key)), says)


def passed_by(records: str) -> str:
    return f"the start offset passed {records}, neither acknowledged nor archived, but still there"


def passed(logs: ShareLogs) -> Fault:
    """Records in two batches of a partition that is not the first."""
    key = logs.topic("passed", partition=1)
    logs.data("passed-1", 6)
    logs.data("passed-1", 4)
    logs.write(snapshot(key=key))
    before = logs.write(update(0, (0, 4, ACKNOWLEDGED, 1), (5, 6, AVAILABLE, 1), key=key))
    place = logs.write(update(7, key=key))
    logs.write(update(8, (7, 7, ACKNOWLEDGED, 1), key=key))
    return Fault("share-unread", place, passed_by("records 5 to 6"), before)


def passed_the_end_of_a_batch(logs: ShareLogs) -> Fault:
    """Of a topic whose share partitions are being made."""
    key = logs.topic("batchend", initialized=False)
    logs.data("batchend-0", 6)
    logs.write(snapshot(key=key))
    before = logs.write(update(0, (0, 4, ACKNOWLEDGED, 1), key=key))
    return Fault("share-unread", logs.write(update(9, key=key)), passed_by("records 5 to 8"), before)


def passed_the_begin_of_a_batch(logs: ShareLogs) -> Fault:
    key = logs.topic("batchbegin")
    logs.skip("batchbegin-0", 6)
    logs.data("batchbegin-0", 2)
    before = logs.write(snapshot(key=key))
    return Fault("share-unread", logs.write(update(7, key=key)), passed_by("records 0 to 6"), before)


def passed_behind_a_gap(logs: ShareLogs) -> Fault:
    key = logs.topic("passed2")
    logs.data("passed2-0", 10)
    before = logs.write(snapshot(key=key))
    logs.skip(STATE, 3)
    return Fault("share-unread", logs.write(update(7, key=key)), passed_by("records 0 to 6"), before, lost=3)


def passed_what_the_cleaner_removed(logs: ShareLogs) -> Fault:
    key = logs.topic("cleaned")
    logs.thinned("cleaned-0", 10)
    logs.write(snapshot(key=key))
    logs.write(update(0, (0, 0, ACKNOWLEDGED, 1), key=key))
    logs.write(update(10, key=key))
    return Fault(None)


def passed_what_is_deleted(logs: ShareLogs) -> Fault:
    key = logs.topic("deleted")
    logs.skip("deleted-0", 10)
    logs.data("deleted-0", 10)
    logs.write(snapshot(key=key))
    logs.write(update(10, key=key))
    return Fault(None)


def passed_what_is_no_record(logs: ShareLogs) -> Fault:
    """A marker, and an aborted transaction."""
    key = logs.topic("aborted")
    logs.transaction("aborted", 21, 0, "aborted-0", kind=ABORT)
    logs.transaction("aborted", 21, 0, "aborted-0", kind=COMMIT, sequence=2)
    logs.write(snapshot(key=key))
    logs.write(update(0, (3, 4, ACKNOWLEDGED, 1), key=key))
    logs.write(update(6, key=key))
    return Fault(None)


def passed_committed(logs: ShareLogs) -> Fault:
    key = logs.topic("committed")
    logs.transaction("committed", 22, 0, "committed-0", kind=COMMIT)
    before = logs.write(snapshot(key=key))
    return Fault("share-unread", logs.write(update(2, key=key)), passed_by("records 0 to 1"), before)


CASES: list[Callable[[ShareLogs], Fault]] = [
    again, again_behind_a_gap, beyond_its_own_limit, within_a_limit_that_was_lowered,
    within_the_limit_before_a_setting, within_the_limit_after_a_setting, beyond_all_limits, never_delivered,
    dead_letters, dead_letter_delivered_again, dead_letter_never_delivered, dead_letter_beyond_the_limit, passed,
    passed_the_end_of_a_batch, passed_the_begin_of_a_batch, passed_behind_a_gap, passed_what_is_deleted,
    passed_what_the_cleaner_removed, passed_what_is_no_record, passed_committed,
]  # fmt: skip  # several to a line
