"""Random commits and transactions: a shard keeps the offsets that a table of record places would keep."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.config.settings import BrokerConfig
from broker.coordinator.groups.machine import GroupMachine
from broker.coordinator.offsets.commit_batch import offset_key_prefix
from protocol.messages.coordinator_records import OffsetCommitValue, encode_record

# -- against Kafka's way of doing it: every committed offset remembers its record's place

PLACES = st.tuples(st.sampled_from(["g", "h"]), st.sampled_from(["t", "u"]), st.integers(0, 2))
STEPS = st.one_of(
    st.tuples(st.just("commit"), PLACES),
    st.tuples(st.just("pending"), PLACES, st.integers(1, 3)),
    st.tuples(st.just("delete"), PLACES),
    st.tuples(st.just("end"), st.integers(1, 3), st.booleans()),
)


class Model:
    def __init__(self):
        self.committed, self.pending = {}, {}

    def step(self, step, at):
        kind, *args = step
        if kind == "commit":
            self.committed[args[0]] = at, at
        elif kind == "pending":
            self.pending.setdefault(args[1], {})[args[0]] = at
        elif kind == "delete":
            self.committed.pop(args[0], None)
            for places in self.pending.values():
                places.pop(args[0], None)
        else:
            for place, offset in self.pending.pop(args[0], {}).items():
                if args[1] and offset > self.committed.get(place, (0, -1))[1]:
                    self.committed[place] = offset, offset

    def unstable(self):
        return {place for places in self.pending.values() for place in places}


def record(place, at):
    key = offset_key_prefix(place[0], place[1]) + place[2].to_bytes(4, "big")
    value = OffsetCommitValue(offset=at, leader_epoch=-1, metadata="", commit_timestamp=at)
    return key, encode_record(value, 4)


def take(shard, step, at):
    kind, *args = step
    if kind == "end":
        shard.replay_marker(args[0], 0, commit=args[1])
        return
    key, value = record(args[0], at)
    shard.replay(key, None if kind == "delete" else value, at, args[1] if kind == "pending" else -1)


@given(st.lists(STEPS, max_size=60))
def test_shard_does_what_record_offsets_would_say(steps):
    shard, model = GroupMachine(0, BrokerConfig.load({})), Model()
    for at, step in enumerate(steps):
        take(shard, step, at)
        model.step(step, at)
        table = shard.offsets
        assert {key: value.offset for key, value in table.fingerprint().items()} == {
            place: offset for place, (offset, _) in model.committed.items()
        }
        found = {
            (group, topic, partition)
            for group in table.group_ids()
            for topic in table.all_partitions(group)
            for partition in table.topic(group, topic).pending or ()
        }
        assert found == model.unstable()
        assert set(table.group_ids()) == {place[0] for place in (*model.committed, *model.unstable())}
