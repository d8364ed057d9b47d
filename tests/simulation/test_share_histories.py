"""Random histories of share consumers, compared with a plain model of every record.

The model knows who holds a record and until when, how often it was delivered, and whether it is done. Fetches and
acknowledgements meet transactions, DeleteRecords, the cleaner, starts of all kinds, topics made anew, limits that
change, and offsets of the group that are altered or deleted.
"""

from __future__ import annotations

from typing import Any

import pytest
from budget import short_and_slow
from core_broker import Client, make_topic
from core_requests import GROUP_RESOURCE, TOPIC, alter_request
from share_model_kit import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    Acks,
    Lock,
    Member,
    Place,
    ShareModel,
    acknowledge_of,
    fetch_of,
    values_of,
)
from shared_records_history import GROUP, MEMBERS, PRODUCERS, TOPICS, SharedRecords
from stepped_kit import Pace, SteppedWorld
from txn_kit import Producer

from protocol.messages.share_group import ShareGroupHeartbeatRequest
from protocol.messages.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)

NEVER_MS = "900000000"
STEPS = 150
CLEANED = {
    "cleanup.policy": "compact,delete",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.0",
    "max.compaction.lag.ms": "2000",
    "delete.retention.ms": "0",
}


class ShareHistory(SharedRecords):
    """One history, and what it should have come to."""

    WEIGHTS = (
        "plain:8 transactional:6 end:5 advance:4 fetch:25 acknowledge:12 disconnect:2 look:2 beat:1 limits:1 "
        "delete_records:1 alter_offsets:1 delete_offsets:1 remake_topic:1 crash:1 restart:1 power:1"
    )

    def __init__(self, seed: int, *, is_cleaned: bool) -> None:
        super().__init__(seed)
        choice = self.rng.choice
        self.is_cleaned = is_cleaned
        self.read_committed = choice([True, False])
        self.members: dict[str, Member] = {}
        self.world = SteppedWorld(
            self.flush,
            pace=Pace(self.rng, choice([None, (0, 1, 3, 10, 100)])),
            share_coordinator_state_topic_num_partitions="2",
            transaction_state_log_num_partitions="1",
            group_share_min_record_lock_duration_ms="1000",
            share_coordinator_snapshot_update_records_per_snapshot=choice(["3", "500"]),
            share_coordinator_state_topic_prune_interval_ms=choice(["3000", "300000"]),
            share_coordinator_cold_partition_snapshot_interval_ms=choice(["2000", "300000"]),
            transaction_max_timeout_ms=NEVER_MS,
            group_share_max_session_timeout_ms=NEVER_MS,
            group_share_session_timeout_ms=NEVER_MS,
        )
        self.connect()
        self.ids: dict[str, bytes] = {}
        self.models: dict[Place, ShareModel] = {}
        for topic in TOPICS:
            self.make_topic(topic)
        self.do_limits()
        for name in PRODUCERS:
            self.producers[name] = Producer(self.client, name)
            assert self.producers[name].init(timeout_ms=int(NEVER_MS)) == 0
        self.join()

    def connect(self) -> None:
        super().connect()
        self.members = {name: Member(GROUP, name, Client(self.world)) for name in MEMBERS}

    def make_topic(self, topic: str) -> None:
        self.ids[topic] = make_topic(self.client, topic, TOPICS[topic])
        if self.is_cleaned:
            assert self.client.call(alter_request(TOPIC, topic, CLEANED), 1).responses[0].error_code == 0
        for index in range(TOPICS[topic]):
            self.models[topic, index] = ShareModel()

    # -- the group

    def beat(self, epoch: int) -> None:
        """One member subscribes for all: a share session asks for no member of the group."""
        request = ShareGroupHeartbeatRequest(group_id=GROUP, member_id="subscriber", member_epoch=epoch)
        if epoch == 0:
            request.subscribed_topic_names = list(TOPICS)
        answer = self.client.call(request, 1)
        assert answer.error_code == 0, answer
        self.member_epoch = answer.member_epoch

    def join(self) -> None:
        self.beat(0)

    def do_beat(self) -> None:
        self.beat(self.member_epoch)

    def do_limits(self) -> None:
        self.limit, self.lock_ms = self.rng.choice([2, 3, 5]), self.rng.choice([1000, 5000])
        configs = {
            "share.auto.offset.reset": "earliest",
            "share.isolation.level": "read_committed" if self.read_committed else "read_uncommitted",
            "share.delivery.count.limit": str(self.limit),
            "share.record.lock.duration.ms": str(self.lock_ms),
        }
        assert self.client.call(alter_request(GROUP_RESOURCE, GROUP, configs), 1).responses[0].error_code == 0
        if self.lines:
            self.note("deliveries", self.limit, "lock", self.lock_ms)

    def everybody_leaves(self) -> None:
        """No sessions are left, and no member of the group."""
        for member in self.members.values():
            self.disconnect(member)
        self.beat(-1)

    def do_alter_offsets(self) -> None:
        self.everybody_leaves()
        place = self.place()
        offset = self.rng.randint(0, self.log_end(place) + 1)
        rows = [AlterShareGroupOffsetsRequestPartition(partition_index=place[1], start_offset=offset)]
        topic = AlterShareGroupOffsetsRequestTopic(topic_name=place[0], partitions=rows)
        answer = self.client.call(AlterShareGroupOffsetsRequest(group_id=GROUP, topics=[topic]), 0)
        assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0), answer
        self.note(place, offset)
        self.models[place].forget(offset)
        self.join()

    def do_delete_offsets(self) -> None:
        self.everybody_leaves()
        topic = self.rng.choice(list(TOPICS))
        rows = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic)]
        answer = self.client.call(DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=rows), 0)
        assert (answer.error_code, answer.responses[0].error_code) == (0, 0), answer
        self.note(topic)
        for index in range(TOPICS[topic]):
            self.models[topic, index].forget()
        self.join()

    # -- deliveries

    def do_advance(self) -> None:
        ms = self.rng.choice([100, 500, 1000, 3000, 6000])
        ends = [lock.until_ms for model in self.models.values() for lock in model.locks.values()]
        if ends and self.is_likely(0.5):  # to the end of a lock, or just before that
            ms = min(ends) - self.world.clock.steady_ms() - self.rng.choice([0, 1])
        self.note(ms)
        self.world.advance(ms)
        for model in self.models.values():
            model.expire(self.world.clock.steady_ms(), self.limit)

    def acknowledgements(self, member: Member) -> Acks:
        """Of some of what a member has: in runs, with one kind for all or one for each offset."""
        kinds = [ACCEPT, ACCEPT, RELEASE, REJECT]
        acks: Acks = {}
        for place, model in self.models.items():
            runs: list[list[int]] = []
            for offset in model.held(member.name):
                if runs and runs[-1][-1] + 1 == offset and self.is_likely(0.8):
                    runs[-1].append(offset)
                else:
                    runs.append([offset])
            for run in runs:
                if self.is_likely(0.3):
                    continue
                if all(offset in model.rows for offset in run) and self.is_likely(0.6):
                    said = [self.rng.choice(kinds)]
                else:
                    said = [self.rng.choice(kinds) if offset in model.rows else GAP for offset in run]
                acks.setdefault(place, []).append((run[0], run[-1], said))
        return acks

    def acknowledged(self, acks: Acks) -> None:
        for place, batches in acks.items():
            for first, last, kinds in batches:
                for offset in range(first, last + 1):
                    kind = kinds[0] if len(kinds) == 1 else kinds[offset - first]
                    self.models[place].acknowledge(offset, kind, self.limit)

    def fetch(self, member: Member, acks: Acks, **fields: Any) -> int:
        """ShareFetch of all partitions, with acknowledgements; how many offsets the member is given."""
        request = fetch_of(member, self.ids, self.models, acks, **fields)
        answer = member.client.call(request, 2)
        self.note(member.name, "epoch", member.epoch, fields, acks)
        assert answer.error_code == 0, answer
        member.epoch += 1
        self.acknowledged(acks)
        self.look_what_is_cleaned()
        names = {topic_id: name for name, topic_id in self.ids.items()}
        given = 0
        for topic in answer.responses:
            for partition in topic.partitions:
                if topic.topic_id in names:  # not one that is no more
                    given += self.delivered(member, (names[topic.topic_id], partition.partition_index), partition)
        return given

    def delivered(self, member: Member, place: Place, partition: Any) -> int:
        """What one partition of an answer says."""
        acquired = [(each.first_offset, each.last_offset, each.delivery_count) for each in partition.acquired_records]
        self.note("->", place, acquired)
        assert (partition.error_code, partition.acknowledge_error_code) == (0, 0), partition
        values = values_of(bytes(partition.records or b""))
        until_ms = self.world.clock.steady_ms() + self.lock_ms
        for first, last, count in acquired:
            for offset in range(first, last + 1):
                lock = Lock(member.name, until_ms, count)
                self.models[place].deliver(offset, values.get(offset), lock, self.read_committed)
        return sum(last + 1 - first for first, last, _ in acquired)

    def do_fetch(self) -> None:
        rng = self.rng
        member = self.members[rng.choice(MEMBERS)]
        most, mode = rng.choice([1, 2, 3, 10, 500]), rng.choice([0, 1])
        given = self.fetch(
            member,
            self.acknowledgements(member) if member.epoch and self.is_likely(0.5) else {},
            max_bytes=rng.choice([1, 300, 1 << 20]),
            max_records=most,
            batch_size=rng.choice([1, 2, 500]),
            share_acquire_mode=mode,
        )
        assert mode == 0 or given <= most

    def do_acknowledge(self) -> None:
        """ShareAcknowledge, which may be the end of the session."""
        member = self.members[self.rng.choice(MEMBERS)]
        if not member.epoch:
            return
        acks, is_last = self.acknowledgements(member), self.is_likely(0.15)
        epoch = -1 if is_last else member.epoch
        answer = member.client.call(acknowledge_of(member, self.ids, acks, epoch), 2)
        self.note(member.name, "epoch", epoch, acks)
        assert answer.error_code == 0, answer
        assert not [p for topic in answer.responses for p in topic.partitions if p.error_code], answer
        member.epoch += 1
        self.acknowledged(acks)
        if is_last:
            self.session_ends(member)

    def session_ends(self, member: Member) -> None:
        member.epoch = 0
        for model in self.models.values():
            model.release(model.held(member.name), self.limit)

    def disconnect(self, member: Member) -> None:
        member.client.leave()
        self.world.run()
        self.session_ends(member)
        member.client = Client(self.world)

    def do_disconnect(self) -> None:
        member = self.members[self.rng.choice(MEMBERS)]
        self.note(member.name)
        self.disconnect(member)

    def do_look(self) -> None:
        """A member takes all that there is: nothing is lost, and no lock lasts too long."""
        member = self.members[self.rng.choice(MEMBERS)]
        size = {"max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        # a fetch that finds only aborted records gives nothing
        while any(self.fetch(member, {}, **size, share_acquire_mode=0) for _ in range(2)):
            pass
        for place, model in self.models.items():
            lost = model.readable(self.read_committed) - model.done - model.locks.keys()
            assert not lost, f"{place} {sorted(lost)} not given"

    # -- ends of the process

    def go_on(self, world: Any) -> None:
        """What members held is free again, as if it had not been delivered."""
        super().go_on(world)
        for model in self.models.values():
            model.locks.clear()


@pytest.mark.parametrize("is_cleaned", [False, True], ids=["kept", "cleaned"])
@pytest.mark.parametrize("seed", short_and_slow(range(162), 12))
def test_records_are_delivered_as_the_model_says(seed, is_cleaned):
    history = ShareHistory(seed, is_cleaned=is_cleaned)
    with history.told():
        history.steps(STEPS)
        history.lines.append("the end")
        history.do_crash()
        history.do_look()
