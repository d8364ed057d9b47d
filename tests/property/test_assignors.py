"""The assignors of consumer groups: everything is assigned once, evenly, with as little moved as can be."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.groups.assignors.choose import assignor
from broker.coordinator.groups.assignors.spec import Spec, run

TOPICS = [bytes([i]) * 16 for i in range(6)]
NAMES = [f"m{i}" for i in range(12)]

topic_counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 20), min_size=1)
member_lists = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)


def assigned(spec: Spec, name: str = "uniform") -> dict[str, dict[bytes, tuple[int, ...]]]:
    """The whole target after an assignment; the snapshot must stay what it was."""
    before = {m: dict(a) for m, a in spec.targets.items()}
    changes = run(assignor(name)(spec))
    assert {m: dict(a) for m, a in spec.targets.items()} == before
    assert set(changes) <= set(spec.members)
    whole = {m: dict(changes.get(m, spec.target(m))) for m in spec.members}
    for member, new in changes.items():
        old = spec.target(member)
        assert new.keys() != old.keys() or any(set(new[t]) != set(old[t]) for t in new), "nothing was changed"
    return whole


def owners(targets: dict[str, dict[bytes, tuple[int, ...]]]) -> dict[tuple[bytes, int], str]:
    found: dict[tuple[bytes, int], str] = {}
    for member, assignment in targets.items():
        for topic, partitions in assignment.items():
            assert partitions, "a topic without partitions"
            for partition in partitions:
                assert (topic, partition) not in found, "a partition twice"
                found[topic, partition] = member
    return found


def sizes(targets: dict[str, dict[bytes, tuple[int, ...]]]) -> list[int]:
    return [sum(map(len, a.values())) for a in targets.values()]


def all_of(topics: dict[bytes, int]) -> set[tuple[bytes, int]]:
    return {(t, p) for t, n in topics.items() for p in range(n)}


@given(topic_counts, member_lists, member_lists, topic_counts)
def test_uniform_is_even_and_sticky_as_members_and_topics_come_and_go(topics, first, second, more):
    before = assigned(Spec(first, topics, {}))
    assert set(owners(before)) == all_of(topics)
    assert max(sizes(before)) - min(sizes(before)) <= 1

    later = {t: max(n, topics.get(t, 0)) for t, n in more.items()}
    after = assigned(Spec(second, later, before))
    assert set(owners(after)) == all_of(later)
    assert max(sizes(after)) - min(sizes(after)) <= 1

    # What a member that stays loses it had above its share; nobody's partitions move without need.
    share = -(-sum(later.values()) // len(second))
    now = owners(after)
    for member in set(first) & set(second):
        had = {(t, p) for t, ps in before[member].items() for p in ps if t in later and p < later[t]}
        lost = {tp for tp in had if now[tp] != member}
        assert len(had) - len(lost) >= min(len(had), share - 1)


@given(topic_counts, member_lists)
def test_uniform_changes_nothing_when_nothing_has_changed(topics, members):
    targets = assigned(Spec(members, topics, {}))
    assert run(assignor("uniform")(Spec(members, topics, targets))) == {}


@given(topic_counts, member_lists)
def test_uniform_moves_the_leavers_partitions_only(topics, members):
    targets = assigned(Spec(members, topics, {}))
    left = members[1:]
    if not left:
        return
    after = assigned(Spec(left, topics, {m: targets[m] for m in left}))
    for member in left:
        assert set(owners({member: targets[member]})) <= set(owners({member: after[member]}))


@st.composite
def mixed(draw):
    topics = draw(topic_counts)
    members = draw(member_lists)
    wants = {m: frozenset(draw(st.sets(st.sampled_from(sorted(topics))))) for m in members}
    wanted = frozenset().union(*wants.values())
    return {t: n for t, n in topics.items() if t in wanted}, members, wants


@given(mixed(), st.data())
def test_mixed_subscriptions_get_all_and_only_what_is_wanted(group, data):
    topics, members, wants = group
    before = assigned(Spec(members, topics, {}, wants))
    assert set(owners(before)) == all_of(topics)
    for (topic, _), member in owners(before).items():
        assert topic in wants[member]
    check_balance(before, topics, wants)

    some = st.sets(st.sampled_from(sorted(topics))) if topics else st.just(set())
    wants = {m: frozenset(data.draw(some)) for m in members}
    wanted = frozenset().union(*wants.values())
    topics = {t: n for t, n in topics.items() if t in wanted}
    after = assigned(Spec(members, topics, before, wants))
    assert set(owners(after)) == all_of(topics)
    for (topic, _), member in owners(after).items():
        assert topic in wants[member]
    check_balance(after, topics, wants)
    assert run(assignor("uniform")(Spec(members, topics, after, wants))) == {}


def check_balance(targets, topics, wants) -> None:
    """No single move of a partition to another of its subscribers makes two members more even."""
    size = {m: sum(map(len, a.values())) for m, a in targets.items()}
    for topic in topics:
        subscribers = [m for m in wants if topic in wants[m]]
        holders = [m for m in subscribers if topic in targets[m]]
        assert max(size[m] for m in holders) - min(size[m] for m in subscribers) <= 1


@given(topic_counts, member_lists)
def test_equal_wants_are_as_even_as_no_wants(topics, members):
    every = dict.fromkeys(members, frozenset(topics))
    targets = assigned(Spec(members, topics, {}, every))
    assert set(owners(targets)) == all_of(topics)
    assert max(sizes(targets)) - min(sizes(targets)) <= 1


@given(topic_counts, member_lists, st.data())
def test_range_is_contiguous_balanced_a_topic_and_independent_of_the_order(topics, members, data):
    targets = assigned(Spec(members, topics, {}), "range")
    assert set(owners(targets)) == all_of(topics)
    for topic, count in topics.items():
        held = [targets[m].get(topic, ()) for m in sorted(members)]
        assert [p for ps in held for p in ps] == list(range(count))
        lengths = [len(ps) for ps in held]
        assert max(lengths) - min(lengths) <= 1
        assert all(a >= b for a, b in pairwise(lengths)), "the first members get the ones more"
    shuffled = data.draw(st.permutations(members))
    assert assigned(Spec(shuffled, topics, {}), "range") == targets
    assert run(assignor("range")(Spec(shuffled, topics, targets))) == {}


@given(st.integers(1, 20), member_lists)
def test_range_gives_the_same_partitions_of_equal_topics_to_the_same_member(count, members):
    targets = assigned(Spec(members, {TOPICS[0]: count, TOPICS[1]: count}, {}), "range")
    assert all(a.get(TOPICS[0]) == a.get(TOPICS[1]) for a in targets.values())


@given(mixed())
def test_range_with_mixed_subscriptions(group):
    topics, members, wants = group
    targets = assigned(Spec(members, topics, {}, wants), "range")
    assert set(owners(targets)) == all_of(topics)
    for topic in topics:
        lengths = Counter({m: len(targets[m].get(topic, ())) for m in members if topic in wants[m]})
        assert max(lengths.values()) - min(lengths.values()) <= 1
    for (topic, _), member in owners(targets).items():
        assert topic in wants[member]


def test_range_puts_static_members_first_by_their_instance_ids():
    instances = {"z": "a", "a": "b"}
    targets = assigned(Spec(["b", "a", "z"], {TOPICS[0]: 3}, {}, None, instances), "range")
    assert {m: a[TOPICS[0]] for m, a in targets.items()} == {"z": (0,), "a": (1,), "b": (2,)}
