"""A share partition against a model that knows one state for each offset.

Members acquire in both modes, accept, release, reject, hang until their lock expires, renew, die, and try to
acknowledge what is not theirs; the log's start moves; now and then the process dies and the partition is made again
from what was stored. Nothing is delivered to two members at once, nothing that is done comes again, no delivery count
goes back. With a dead-letter queue, records on their way there are archived later, in any order, and the start offset
waits for them.
"""

from __future__ import annotations

import copy

import pytest
from budget import budget
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.coordinator.share.acknowledge import Acknowledgement, apply, decide
from broker.coordinator.share.acquire import AcquireRequest, ReadBatch, acquire, enough_read
from broker.coordinator.share.combine import combine
from broker.coordinator.share.dead_letters.letter import Letter
from broker.coordinator.share.limits import Limits
from broker.coordinator.share.share_partition import SharePartition
from broker.coordinator.share.state import ShareState
from protocol.errors import KafkaError

MEMBERS = st.sampled_from(["a", "b", "c"])
LOCK_MS = 100
FREE, DONE = "free", "done"


def read_enough(partition, asked, offset, batches):
    """The batches that a fetch looks at: not those behind the offset that is enough."""
    if not batches:
        return batches
    enough = enough_read(partition, asked, offset, batches[0].first)
    return batches[: next((at for at, batch in enumerate(batches, 1) if batch.last >= enough), len(batches))]


def facts(partition):
    """All that is known of a share partition."""
    in_flight = [
        (first, last, delivery.state, delivery.count, delivery.member)
        for batch in partition.batches
        for first, last, delivery in batch.deliveries(batch.first, batch.last)
    ]
    gap = partition.gap and (partition.gap.start, partition.gap.end)
    return (
        partition.start_offset,
        partition.end_offset,
        partition.next_fetch_offset(),
        partition.in_flight,
        gap,
        in_flight,
    )


def offsets(letters):
    return {offset for letter in letters for offset in range(letter.first, letter.last + 1)}


class ShareMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.limits = Limits(most_deliveries=4, most_in_flight=12, lock_ms=LOCK_MS)
        self.now_ms = 0
        self.log: list[ReadBatch] = []
        self.log_start = 0
        self.partition = SharePartition(0)
        self.stored = ShareState(0, 0, 0, 0, 0, 0, 0)
        # the model, by offset: (free, count), (member, count, deadline) or done
        self.known: dict[int, tuple[object, int, int]] = {}
        self.counts: dict[int, int] = {}  # the highest stored delivery count
        self.finished: set[int] = set()  # stored as acknowledged, archiving or archived
        self.letters: list[Letter] = []  # on their way

    @initialize(has_queue=st.booleans())
    def configure(self, has_queue):
        self.limits = self.limits._replace(has_queue=has_queue)

    @property
    def end(self) -> int:
        return self.log[-1].last + 1 if self.log else 0

    def store(self, batches) -> None:
        """As the share coordinator does: the states, and the start offset that was before them."""
        if batches:
            partition = self.partition
            self.stored = self.stored.changed(0, partition.start_offset, partition.complete_count, combine(batches, -1))
            for first, last, state, count in batches:
                for offset in range(first, last + 1):
                    if offset >= self.log_start:
                        assert count >= self.counts.get(offset, 0), "a stored delivery count went back"
                    self.counts[offset] = count
                    if state in (2, 3, 4):
                        self.finished.add(offset)
                if state == 3:
                    self.letters.append(Letter(first, last, count, ""))
        self.partition.move_start()

    # -- what happens

    @rule(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3))
    def produce(self, sizes):
        for size in sizes:
            self.log.append(ReadBatch(self.end, self.end + size - 1))

    @rule(
        member=MEMBERS, most=st.integers(1, 12), size=st.integers(1, 6), mode=st.integers(0, 1), read=st.integers(1, 4)
    )
    def fetch(self, member, most, size, mode, read):
        partition = self.partition
        if not partition.can_acquire(self.limits):
            return
        if partition.next_fetch_offset() < self.log_start:
            partition.log_start_moved(self.log_start)
        offset = partition.next_fetch_offset()
        batches = [batch for batch in self.log if batch.last >= offset][:read]
        asked = AcquireRequest(member, self.now_ms + LOCK_MS, most, size, mode)
        twin = copy.deepcopy(partition)
        found, count = acquire(partition, self.limits, asked, offset, batches)
        assert acquire(twin, self.limits, asked, offset, read_enough(twin, asked, offset, batches)) == (found, count)
        assert facts(twin) == facts(partition), "fewer batches were looked at, and something else became of them"
        assert sum(each.last - each.first + 1 for each in found) == count
        if mode == 1:
            assert sum(each.last - each.first + 1 for each in found) <= most
        for first, last, delivery_count in found:
            for each in range(first, last + 1):
                holder, before, deadline = self.known.get(each, (FREE, 0, 0))
                if each >= self.log_start:  # below it, whole batches are delivered all the same, as in Kafka
                    assert holder == FREE, f"{each} is {holder}'s until {deadline}"
                    assert each not in self.finished
                    assert delivery_count == before + 1
                assert delivery_count <= self.limits.most_deliveries
                self.known[each] = member, delivery_count, self.now_ms + LOCK_MS

    def held(self, member):
        return sorted(o for o, (holder, _, _) in self.known.items() if holder == member)

    @rule(
        member=MEMBERS, pick=st.integers(0, 30), length=st.integers(1, 4), types=st.lists(st.integers(0, 3), min_size=4)
    )
    def acknowledge(self, member, pick, length, types):
        """A run of what the member holds, one type for all or one for each."""
        held = self.held(member)
        if not held:
            return
        first = last = held[pick % len(held)]
        while last + 1 in held and last - first + 1 < length:
            last += 1
        kinds = types[:1] if types[0] == types[1] or first == last else (types * length)[: last - first + 1]
        start = self.partition.start_offset
        changes = decide(self.partition, self.limits, member, 0, [Acknowledgement(first, last, kinds)])
        self.store(apply(self.partition, changes, None))
        for offset in range(max(first, start), last + 1):  # below it nobody minds; the lock will expire
            kind = kinds[0] if len(kinds) == 1 else kinds[offset - first]
            self.end_delivery(offset, done=kind != 2)

    def end_delivery(self, offset, *, done):
        _, count, _ = self.known[offset]
        gone = done or count >= self.limits.most_deliveries or offset < self.partition.start_offset
        self.known[offset] = (DONE if gone else FREE), count, 0

    @rule(member=MEMBERS, pick=st.integers(0, 30))
    def renew(self, member, pick):
        held = self.held(member)
        if held:
            offset = held[pick % len(held)]
            decide(self.partition, self.limits, member, self.now_ms + LOCK_MS, [Acknowledgement(offset, offset, [4])])
            if offset < self.partition.start_offset:
                return  # nobody minds it; the lock will expire
            self.known[offset] = member, self.known[offset][1], self.now_ms + LOCK_MS

    @rule(member=MEMBERS, first=st.integers(0, 40), length=st.integers(1, 5), kind=st.integers(0, 3))
    def acknowledge_anything(self, member, first, length, kind):
        """Refused as a whole, unless all of it is the member's, or below the start offset."""
        last, start = first + length - 1, self.partition.start_offset
        asked = [Acknowledgement(first, last, [kind])]
        mine = all(self.known.get(o, (FREE,))[0] == member for o in range(max(first, start), last + 1))
        try:
            changes = decide(self.partition, self.limits, member, 0, asked)
        except KafkaError:
            assert not (mine and first >= start), "refused, although all of it is the member's"
            return
        assert mine or last < start, "accepted, although not all of it is the member's"
        self.store(apply(self.partition, changes, None))
        for offset in range(max(first, start), last + 1):
            self.end_delivery(offset, done=kind != 2)

    @rule(member=MEMBERS)
    def die(self, member):
        """The member's session ends."""
        held = self.held(member)
        self.store(self.partition.release(member, self.limits))
        for offset in held:
            self.end_delivery(offset, done=False)

    @precondition(lambda self: self.letters)
    @rule(pick=st.integers(0, 30))
    def letter_is_sent(self, pick):
        letter = self.letters.pop(pick % len(self.letters))
        ended = self.partition.end_archiving([letter])
        assert [offset for first, last, *_ in ended for offset in range(first, last + 1)] == list(
            range(letter.first, letter.last + 1)
        )
        assert {(state, count) for _, _, state, count in ended} == {(4, letter.delivery_count)}
        self.store(ended)

    @rule(ms=st.integers(1, LOCK_MS))
    def wait(self, ms):
        self.now_ms += ms
        due = self.partition.next_deadline_ms
        locked = [deadline for holder, _, deadline in self.known.values() if holder not in (FREE, DONE)]
        assert due == (min(locked) if locked else None)
        self.store(self.partition.expire(self.now_ms, self.limits))
        for offset, (holder, _, deadline) in list(self.known.items()):
            if holder not in (FREE, DONE) and deadline <= self.now_ms:
                self.end_delivery(offset, done=False)

    @precondition(lambda self: self.end > self.log_start)
    @rule(by=st.integers(1, 4))
    def delete_records(self, by):
        """Retention moves the log's start."""
        self.log_start = min(self.end, self.log_start + by)
        self.log = [b for b in self.log if b.last >= self.log_start] or self.log[-1:]
        self.partition.log_start_moved(self.log_start)
        for offset, (holder, count, _) in list(self.known.items()):
            if offset < self.log_start and holder == FREE:
                self.known[offset] = DONE, count, 0

    @rule()
    def restart(self):
        """The process dies: the partition is made again from what is stored."""
        start = max(self.stored.start_offset, 0)
        self.partition = SharePartition.from_state(self.stored, start, 0)
        resumed = [Letter(first, last, count, "") for first, last, _, count in self.partition.archiving()]
        lost = offsets(self.letters) - offsets(resumed)
        assert not lost or max(lost) < start, "a letter is forgotten"
        self.letters = resumed
        if self.partition.start_offset < self.log_start:
            self.partition.log_start_moved(self.log_start)
        floor = self.partition.start_offset
        for offset in list(self.known):
            if offset < floor or offset in self.finished:
                self.known[offset] = DONE, self.known[offset][1], 0
            else:
                self.known[offset] = FREE, self.counts.get(offset, 0), 0

    # -- what must hold

    @invariant()
    def nothing_is_lost(self):
        """What may still be delivered lies at or above the start offset."""
        floor = self.partition.start_offset
        for offset in range(self.log_start, floor):
            assert self.known.get(offset, (DONE,))[0] != FREE, f"{offset} will never be delivered"
        assert self.stored.start_offset <= floor
        waiting = [offset for offset in offsets(self.letters) if offset >= self.log_start]
        assert floor <= min(waiting, default=floor), "the start offset has not waited for a letter"

    @invariant()
    def complete_count_is_what_is_done_in_flight(self):
        partition = self.partition
        done = sum(
            partition.counted(first, last)
            for batch in partition.batches
            for first, last, delivery in batch.deliveries(batch.first, batch.last)
            if delivery.state in (2, 4)
        )
        assert partition.complete_count == done


TestShareMachine = pytest.mark.heavy(ShareMachine.TestCase)
TestShareMachine.settings = budget(60)


FETCHES = st.tuples(st.integers(1, 12), st.integers(1, 6), st.integers(0, 1), st.sampled_from([None, 1, 2]))


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0, 0, 2, 20])), min_size=1), st.lists(FETCHES))
@budget(200)
def test_fewer_batches_change_nothing_in_a_log_with_gaps(sizes, fetches):
    """Batches behind what a fetch can acquire need no reading, also where the cleaner has removed records."""
    log, end = [], 0
    for size, missing in sizes:
        log.append(ReadBatch(end + missing, end + missing + size - 1))
        end = log[-1].last + 1
    partition, limits = SharePartition(0), Limits(most_deliveries=4, most_in_flight=12, lock_ms=LOCK_MS)
    for most, size, mode, kind in fetches:
        offset = partition.next_fetch_offset()
        if not partition.can_acquire(limits) or offset > log[-1].last:
            continue
        batches = [batch for batch in log if batch.last >= offset]
        asked, twin = AcquireRequest("a", LOCK_MS, most, size, mode), copy.deepcopy(partition)
        found = acquire(partition, limits, asked, offset, batches)
        assert acquire(twin, limits, asked, offset, read_enough(twin, asked, offset, batches)) == found
        assert facts(twin) == facts(partition)
        if kind is not None:
            asked = [Acknowledgement(first, last, [kind]) for first, last, _ in found[0]]
            apply(partition, decide(partition, limits, "a", 0, asked), None)
            partition.move_start()
