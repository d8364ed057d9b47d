"""The range assignor: each subscriber gets one range of consecutive partitions of every topic.

Members are ordered: static ones first, by instance id, then the others by member id. The first P mod M members get one
partition more of each topic. Topics with equal subscribers and partition counts are therefore divided alike: partition
p of both goes to the same member (co-partitioning). The last targets do not matter.

Source: KIP-848; Kafka's RangeAssignor (of the group coordinator).
"""

from __future__ import annotations

from broker.coordinator.groups.assignors.spec import Assignment, Changes, Spec, Steps

PARTITIONS_A_SLICE = 20_000


def assign_range(spec: Spec) -> Steps:
    """Give each subscriber a range of every topic."""
    ordered = sorted(spec.members, key=lambda m: (0, spec.instance_ids[m]) if m in spec.instance_ids else (1, m))
    subscribers: dict[bytes, int] = {}
    if spec.wants is None:
        subscribers = dict.fromkeys(spec.topics, len(ordered))
    else:
        for member_id in ordered:
            for topic_id in spec.wants[member_id]:
                subscribers[topic_id] = subscribers.get(topic_id, 0) + 1
    shares = {topic_id: divmod(spec.topics[topic_id], count) for topic_id, count in subscribers.items()}
    starts = dict.fromkeys(subscribers, 0)
    turns = dict.fromkeys(subscribers, 0)
    changes: Changes = {}
    done = 0
    for member_id in ordered:
        assignment: dict[bytes, tuple[int, ...]] = {}
        for topic_id in subscribers if spec.wants is None else spec.wants[member_id]:
            share, extra = shares[topic_id]
            start = starts[topic_id]
            stop = start + share + (turns[topic_id] < extra)
            turns[topic_id] += 1
            starts[topic_id] = stop
            if start < stop:
                assignment[topic_id] = tuple(range(start, stop))
            done += 1 + stop - start
        if not _same(assignment, spec.target(member_id)):
            changes[member_id] = assignment
        if done > PARTITIONS_A_SLICE:
            done = 0
            yield
    return changes


def _same(new: Assignment, old: Assignment) -> bool:
    if new.keys() != old.keys():
        return False
    return all(new[t] == old[t] or new[t] == tuple(sorted(old[t])) for t in new)
