"""A segment of a topic that was created again is read from its start, whatever its size."""

from __future__ import annotations

from pipeline.source.changed_segments import SegmentState, plan_reads, segment_states, state_after_read
from pipeline.source.segment_files import SegmentFile

OLD, NEW = "old" * 7 + "_", "new" * 7 + "_"


def listed(size: int, topic_id: str | None) -> list[SegmentState]:
    return segment_states([SegmentFile("t-0", 0, "/t-0/0.log", size, topic_id)])


def known(topic_id: str | None, reached: int = 1000) -> dict[tuple[str, int], SegmentState]:
    return {("t-0", 0): SegmentState("t-0", 0, reached, reached, 10, None, topic_id)}


def test_grown_segment_of_another_topic_is_read_from_its_start():
    assert [part.position for part, _ in plan_reads(listed(2500, OLD), known(OLD), 1 << 20).read] == [1000]
    assert [part.position for part, _ in plan_reads(listed(2500, NEW), known(OLD), 1 << 20).read] == [0]


def test_segment_of_another_topic_and_the_same_size_is_read():
    assert plan_reads(listed(1000, OLD), known(OLD), 1 << 20).read == []
    plan = plan_reads(listed(1000, NEW), known(OLD), 1 << 20)
    assert [part.position for part, _ in plan.read] == [0]
    assert plan.kept == []


def test_state_that_was_stored_before_ids_were_goes_on():
    stored = SegmentState(*["t-0", 0, 1000, 1000, 10, None])
    plan = plan_reads(listed(2500, NEW), {stored.key: stored}, 1 << 20)
    assert [part.position for part, _ in plan.read] == [1000]


def test_topic_that_is_created_again_during_the_read_is_read_again():
    [(part, wanted)] = plan_reads(listed(2500, OLD), known(OLD), 1 << 20).read
    facts = {"start": 1000, "reached": 2500, "end": 25}
    assert state_after_read(part, wanted, facts, listed(2500, OLD)[0]) == wanted._replace(reached=2500, end=25)
    assert state_after_read(part, wanted, facts, listed(2500, NEW)[0]) is None
