"""The "simple" assignor of share groups (KIP-932): every member gets something to read, and every partition a reader.

With more members than partitions, several members share a partition; with fewer, a member has several. Targets are
even, and members keep what they have. Where all members subscribe to the same topics, the partitions of all topics are
dealt as one; else topic by topic among those that subscribe to it.

Source: Kafka's SimpleHomogeneousAssignmentBuilder and SimpleHeterogeneousAssignmentBuilder. Kafka deals in the order of
        its hash tables; here in the order of topic ids and partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.coordinator.groups.assignors.spec import UNASSIGNED, Assignment

Share = tuple[bytes, int]  # topic id, partition


def assign_simple(
    wants: Mapping[str, frozenset[bytes]],
    assignable: Mapping[bytes, Sequence[int]],
    targets: Mapping[str, Assignment],
) -> dict[str, Assignment]:
    """A target for each member.

    wants       member id -> topic ids that it subscribes to
    assignable  topic id -> partitions that may be assigned
    targets     member id -> its last target
    """
    members = sorted(wants)
    kinds = set(wants.values())
    topics = sorted(frozenset().union(*kinds))
    made: dict[str, list[Share]] = {m: [] for m in members}
    dealt = [topics] if len(kinds) == 1 else [[topic_id] for topic_id in topics]
    for together in dealt:
        places = [(topic_id, index) for topic_id in together for index in assignable.get(topic_id, ())]
        readers = [m for m in members if together[0] in wants[m]] if together else []
        if not places or not readers:
            continue
        known = set(places)
        owned = {
            m: [(t, p) for t in together for p in targets.get(m, UNASSIGNED).get(t, ()) if (t, p) in known]
            for m in readers
        }
        for member_id, shares in _deal(readers, places, owned).items():
            made[member_id] += shares
    return {member_id: _by_topic(shares) for member_id, shares in made.items()}


def _by_topic(shares: Sequence[Share]) -> Assignment:
    found: dict[bytes, tuple[int, ...]] = {}
    for topic_id, index in sorted(shares):
        found[topic_id] = (*found.get(topic_id, ()), index)
    return found


def _deal(members: Sequence[str], places: Sequence[Share], owned: Mapping[str, list[Share]]) -> dict[str, list[Share]]:
    """Every place goes to as many members as `sharing` says; each member gets its even number of places."""
    sharing = -(-len(members) // len(places))
    total = sharing * len(places)
    limits = {m: -(-total * (at + 1) // len(members)) - -(-total * at // len(members)) for at, m in enumerate(members)}
    kept = {m: owned[m][max(0, len(owned[m]) - limits[m]) :] for m in members}
    readers: dict[Share, list[str]] = {place: [] for place in places}
    for member_id in members:
        for place in kept[member_id]:
            readers[place].append(member_id)
    for place, having in readers.items():
        for member_id in having[: max(0, len(having) - sharing)]:
            kept[member_id].remove(place)
        del having[: max(0, len(having) - sharing)]
    unfilled = [m for m in members if len(kept[m]) < limits[m]]
    _fill(readers, kept, limits, unfilled, sharing)
    return kept


def _fill(
    readers: Mapping[Share, list[str]],
    kept: Mapping[str, list[Share]],
    limits: Mapping[str, int],
    unfilled: list[str],
    sharing: int,
) -> None:
    """Deal the places that lack readers, in turn, to the members that lack places."""
    turn, any_dealt = 0, False
    for place, having in readers.items():
        while len(having) < sharing:
            if turn >= len(unfilled):
                if not any_dealt:
                    break
                turn, any_dealt = 0, False
                continue
            member_id = unfilled[turn]
            if member_id in having:
                turn += 1
                continue
            having.append(member_id)
            kept[member_id].append(place)
            any_dealt = True
            if len(kept[member_id]) >= limits[member_id]:
                del unfilled[turn]
            else:
                turn += 1
        if not unfilled:
            break
