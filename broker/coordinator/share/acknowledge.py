"""Acknowledges records: accept, release, reject, gap, or renew the lock. All of a partition's, or none.

| type | means                                   | the record becomes                                        |
|------|-----------------------------------------|-----------------------------------------------------------|
| 0    | gap: no record, or none for the client  | archived                                                  |
| 1    | accept                                  | acknowledged                                              |
| 2    | release                                 | available; archived if it was delivered as often as it may |
| 3    | reject                                  | archived                                                  |
| 4    | renew (KIP-1222)                        | stays acquired, with a new lock                           |

Where the group has a dead-letter queue (KIP-1191), what is rejected or was delivered too often is archiving instead,
until its record is in the queue.

Source: KIP-932, KIP-1191; Kafka's SharePartition.acknowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from broker.coordinator.share.combine import StateBatch
from broker.coordinator.share.in_flight import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    NOBODY,
    RELEASED,
    TERMINAL,
    Batch,
    Delivery,
)
from broker.coordinator.share.limits import Limits
from broker.coordinator.share.share_partition import SharePartition
from protocol.errors import ErrorCode, KafkaError

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
_STATES: Final = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}


class Acknowledgement(NamedTuple):
    """Offsets first..last, with one type for all of them or one for each."""

    first: int
    last: int
    types: Sequence[int]


class Change(NamedTuple):
    """A delivery that ends in a state."""

    first: int
    last: int
    delivery: Delivery
    state: int
    is_rejected: bool = False


def check_acknowledgements(acknowledgements: Sequence[Acknowledgement], highest_type: int, *, is_renewal: bool) -> None:
    """The checks that need no share partition. Errors: INVALID_REQUEST."""
    before = -1
    for first, last, types in acknowledgements:
        if (
            first > last
            or first < before
            or not types
            or (len(types) > 1 and len(types) != last - first + 1)
            or any(not GAP <= each <= highest_type for each in types)
            or (RENEW in types and not is_renewal)
        ):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        before = last


def decide(
    partition: SharePartition,
    limits: Limits,
    member: str,
    deadline_ms: int,
    acknowledgements: Sequence[Acknowledgement],
) -> list[Change]:
    """What a member's acknowledgements change, for `apply`. Locks are renewed at once, as in Kafka.

    Errors:  INVALID_RECORD_STATE: a record is not acquired, or not by this member. INVALID_REQUEST: nobody ever did.
    """
    accepted = _accepted(partition, member, acknowledgements)
    if accepted is not None:
        return accepted
    changes: list[Change] = []
    ending: set[int] = set()  # ids of deliveries that an earlier acknowledgement of the request ends
    for each in acknowledgements:
        if each.last < partition.start_offset:
            continue
        for batch in _batches(partition, each):
            if batch.last < partition.start_offset:
                continue
            if batch.whole is not None:
                _check_owner(batch.whole, member, ending)
            is_part = batch.first < each.first or batch.last > each.last
            begins_below = batch.first < partition.start_offset <= batch.last
            if is_part or batch.whole is None or len(each.types) > 1 or begins_below:
                if batch.whole is not None and batch.whole.state != ACQUIRED:
                    raise _wrong_state(
                        "The batch cannot be acknowledged. The subset batch is not in the acquired state."
                    )
                batch.split()
            for first, last, delivery in batch.deliveries(each.first, each.last):
                if first >= partition.start_offset or batch.whole is not None:
                    kind = each.types[first - each.first] if len(each.types) > 1 else each.types[0]
                    _decide_one(partition, limits, member, deadline_ms, changes, ending, (first, last, delivery), kind)
    return changes


def _accepted(
    partition: SharePartition, member: str, acknowledgements: Sequence[Acknowledgement]
) -> list[Change] | None:
    """What `decide` says where each of them accepts a whole batch of the member; None: one does not."""
    changes: list[Change] = []
    before = partition.start_offset - 1
    for first, last, types in acknowledgements:
        batch = partition.batches.get(first)
        if batch is None or batch.last != last or first <= before or len(types) != 1 or types[0] != ACCEPT:
            return None
        delivery = batch.whole
        if delivery is None or delivery.state != ACQUIRED or delivery.member != member:
            return None
        changes.append(Change(first, last, delivery, ACKNOWLEDGED))
        before = last
    return changes


def _batches(partition: SharePartition, each: Acknowledgement) -> list[Batch]:
    """The batches in flight that are acknowledged. Errors: INVALID_RECORD_STATE, INVALID_REQUEST."""
    floor = partition.batches.floor(each.first)
    if floor is None:
        if each.first < partition.start_offset <= each.last:
            floor = partition.batches.floor(partition.start_offset)
        if floor is None:
            raise _wrong_state("Batch record not found. The request batch offsets are not found in the cache.")
    found = partition.batches.between(floor.first, each.last)
    if found[-1].last < each.first:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Batch record not found. The first offset in request is past acquired records."
        )
    if each.last > found[-1].last:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Batch record not found. The last offset in request is past acquired records."
        )
    return found


def _check_owner(whole: Delivery, member: str, ending: set[int]) -> None:
    if whole.member == NOBODY:
        raise _wrong_state("The batch cannot be acknowledged. The batch is not in the acquired state.")
    if whole.member != member:
        raise _wrong_state("Member is not the owner of batch record")
    if id(whole) in ending:
        raise _wrong_state("The record state is invalid. The acknowledgement of delivery could not be completed.")


def _decide_one(
    partition: SharePartition,
    limits: Limits,
    member: str,
    deadline_ms: int,
    changes: list[Change],
    ending: set[int],
    part: tuple[int, int, Delivery],
    kind: int,
) -> None:
    first, last, delivery = part
    if delivery.state != ACQUIRED:
        raise _wrong_state("The offset cannot be acknowledged. The offset is not acquired.")
    if id(delivery) in ending:
        raise _wrong_state("The record state is invalid. The acknowledgement of delivery could not be completed.")
    if delivery.member != member:
        raise _wrong_state("Member is not the owner of offset")
    if kind == RENEW:
        if not limits.may_renew:
            raise _wrong_state("Renewing acquisition locks is not enabled for the group.")
        delivery.renew(partition.lock(first, last, deadline_ms))
        return
    state = _STATES[kind]
    if kind == RELEASE:
        state = limits.after_release(delivery.count)
    elif kind == REJECT:
        state = limits.given_up
    ending.add(id(delivery))
    changes.append(Change(first, last, delivery, state, kind == REJECT))


def apply(partition: SharePartition, changes: Sequence[Change], released: list[Delivery] | None) -> list[StateBatch]:
    """Make the changes: the states to store. Then `SharePartition.move_start`.

    `released`: gets what was given back, which is not available before `make_available`.
    """
    stored = []
    for first, last, delivery, state, _ in changes:
        delivery.end(state)
        stored.append(StateBatch(first, last, state, delivery.count))
        if state in TERMINAL:
            partition.complete_count += partition.counted(first, last)
            continue
        if state == ARCHIVING:
            continue
        partition.find_next = True
        if released is not None:
            delivery.state = RELEASED
            released.append(delivery)
    return stored


def make_available(partition: SharePartition, released: Sequence[Delivery]) -> None:
    """What a request has given back may be acquired from now on."""
    for delivery in released:
        if delivery.state == RELEASED:
            delivery.state = AVAILABLE
            partition.find_next = True


def _wrong_state(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, text)
