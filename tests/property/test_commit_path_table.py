"""The columns of committed offsets against a dictionary: whatever happens, they hold the same."""

from __future__ import annotations

from budget import budget
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.coordinator.offsets.table import Committed, OffsetTable

GROUPS, NAMES = st.sampled_from(["g", "h"]), st.sampled_from(["a", "b"])
IDS = st.sampled_from([bytes(16), b"i" * 16, b"j" * 16])
OFFSETS = st.integers(-2, 5) | st.integers(-(2**63) + 1, 2**63 - 1)
EPOCHS = st.integers(-1, 3) | st.integers(-(2**31), 2**31 - 1)
TIMES = st.integers(0, 2**62)
PARTITIONS = st.integers(0, 7)


class TableAgainstDictionary(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.table = OffsetTable()
        self.model: dict[tuple[str, str, int], Committed] = {}

    @rule(
        group=GROUPS,
        topic=NAMES,
        partition=PARTITIONS,
        offset=OFFSETS,
        epoch=EPOCHS,
        metadata=st.sampled_from(["", "", "m"]),
        time=TIMES,
        expire=st.sampled_from([-1, -1, 7]),
        topic_id=IDS,
    )
    def put(self, group, topic, partition, offset, epoch, metadata, time, expire, topic_id):
        committed = Committed(offset, epoch, metadata, time, expire, topic_id)
        self.table.replay(group, topic, partition, committed)
        self.model[group, topic, partition] = committed

    @rule(
        group=GROUPS,
        topic=NAMES,
        partitions=st.lists(PARTITIONS, min_size=1, unique=True) | PARTITIONS.map(lambda n: list(range(n + 1))),
        data=st.data(),
        time=TIMES,
        topic_id=IDS,
    )
    def put_run(self, group, topic, partitions, data, time, topic_id):
        n = len(partitions)
        offsets = tuple(data.draw(st.lists(OFFSETS, min_size=n, max_size=n)))
        epochs = tuple(data.draw(st.lists(EPOCHS, min_size=n, max_size=n)))
        columns = self.table.topic_or_new(group, topic)
        columns.replay_run(tuple(partitions), offsets, epochs, time, topic_id, dense=partitions == list(range(n)))
        for partition, offset, epoch in zip(partitions, offsets, epochs, strict=True):
            self.model[group, topic, partition] = Committed(offset, epoch, "", time, -1, topic_id)

    @rule(group=GROUPS, topic=NAMES, partition=st.integers(-1, 9))
    def remove(self, group, topic, partition):
        self.table.replay(group, topic, partition, None)
        self.model.pop((group, topic, partition), None)

    @rule(group=GROUPS)
    def remove_group(self, group):
        for topic, partitions in self.table.partitions(group).items():
            for partition in partitions:
                self.table.replay(group, topic, partition, None)
        self.model = {key: value for key, value in self.model.items() if key[0] != group}

    @invariant()
    def holds_the_same(self):
        assert self.table.fingerprint() == self.model
        assert self.table.size == len(self.model)
        assert set(self.table.group_ids()) == {group for group, _, _ in self.model}
        for group in ("g", "h", "none"):
            wanted: dict[str, list[int]] = {}
            for g, topic, partition in sorted(self.model):
                if g == group:
                    wanted.setdefault(topic, []).append(partition)
            assert self.table.partitions(group) == wanted
            assert self.table.has_group(group) == bool(wanted)
            for partition in range(-1, 10):
                assert self.table.get(group, "a", partition) == self.model.get((group, "a", partition))


TableAgainstDictionary.TestCase.settings = budget(20, stateful_step_count=25)
TestTable = TableAgainstDictionary.TestCase
