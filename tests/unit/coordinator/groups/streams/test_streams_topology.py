"""Which topics a topology needs, with how many partitions, and what stands in its way."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import make_topic
from unit.coordinator.groups.streams.kit import StreamsWorld, as_dict, statuses, subtopology, topic_info, topology

from broker.coordinator.groups.streams.records import topology_value
from broker.coordinator.groups.streams.topology import (
    INCORRECTLY_PARTITIONED_TOPICS,
    MISSING_INTERNAL_TOPICS,
    MISSING_SOURCE_TOPICS,
    ConfiguredTopology,
    configure,
    is_same,
    required_topics,
    source_topics,
    summary,
)
from protocol.errors import ErrorCode, KafkaError


def configured(topics: dict[str, int], *subtopologies: Any) -> ConfiguredTopology:
    return configure(topology_value(topology(*subtopologies)), topics.get)


def status(found: ConfiguredTopology) -> int | None:
    return None if found.status is None else found.status[0]


def made(found: ConfiguredTopology) -> dict[str, int]:
    return {topic.name: topic.partitions for topic in found.missing}


def task_counts(found: ConfiguredTopology) -> dict[str, int]:
    return {s.subtopology_id: s.tasks for s in (found.subtopologies or {}).values()}


# -- sources and tasks ------------------------------------------------------------------------------------------------


def test_topology_of_sources_alone_is_ready():
    found = configured({"a": 2, "b": 5}, subtopology("0", "a", "b"))
    assert found.is_ready
    assert task_counts(found) == {"0": 5}
    assert found.missing == ()


def test_missing_sources_are_all_named_in_order():
    found = configured({"a": 2}, subtopology("0", "a", "z"), subtopology("1", "y"))
    assert found.status == (MISSING_SOURCE_TOPICS, "Source topics are missing: y, z")
    assert (found.subtopologies, found.missing) == (None, ())


def test_summary_shows_three_names_and_counts_the_rest():
    assert summary("c") == "c"
    assert summary("cba") == "a, b, c"
    assert summary("edcba") == "a, b, c and 2 more"


def test_subtopology_that_reads_nothing_is_invalid():
    with pytest.raises(KafkaError) as error:
        configured({}, subtopology("0"))
    assert error.value.code == ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_subtopologies_come_in_the_order_of_their_ids():
    found = configured({"a": 1}, subtopology("2", "a"), subtopology("10", "a"))
    assert list(task_counts(found)) == ["10", "2"], "as text"


# -- changelogs -------------------------------------------------------------------------------------------------------


def test_changelog_has_as_many_partitions_as_its_subtopology_has_tasks():
    found = configured({"a": 2, "b": 3}, subtopology("0", "a", "b", changelogs=(topic_info("log"),)))
    assert status(found) == MISSING_INTERNAL_TOPICS
    assert made(found) == {"log": 3}
    assert task_counts(found) == {"0": 3}


def test_changelog_that_is_there_is_not_made():
    found = configured({"a": 2, "log": 2}, subtopology("0", "a", changelogs=(topic_info("log"),)))
    assert found.is_ready


def test_changelog_with_other_partitions_stands_in_the_way():
    found = configured({"a": 2, "log": 3}, subtopology("0", "a", changelogs=(topic_info("log"),)))
    assert status(found) == INCORRECTLY_PARTITIONED_TOPICS
    assert found.missing == ()


def test_subtopology_is_stateful_if_it_has_changelogs():
    stateful = subtopology("1", "a", changelogs=(topic_info("log"),))
    found = configured({"a": 1, "log": 1}, subtopology("0", "a"), stateful)
    assert [s.is_stateful for s in found.assignable()] == [False, True]


# -- repartition topics -----------------------------------------------------------------------------------------------


def test_repartition_topic_has_the_partitions_of_the_largest_source_of_its_writer():
    found = configured(
        {"a": 2, "b": 7}, subtopology("0", "a", "b", sinks=("r",)), subtopology("1", repartition=(topic_info("r"),))
    )
    assert made(found) == {"r": 7}
    assert task_counts(found) == {"0": 7, "1": 7}


def test_repartition_topic_with_fixed_partitions_keeps_them():
    found = configured(
        {"a": 2}, subtopology("0", "a", sinks=("r",)), subtopology("1", repartition=(topic_info("r", 5),))
    )
    assert made(found) == {"r": 5}
    assert task_counts(found) == {"0": 2, "1": 5}


def test_repartition_topics_in_a_chain_are_counted_whatever_the_order():
    parts = [
        subtopology("2", repartition=(topic_info("s"),), changelogs=(topic_info("log"),)),
        subtopology("1", repartition=(topic_info("r"),), sinks=("s",)),
        subtopology("0", "a", sinks=("r",)),
    ]
    for order in (parts, parts[::-1]):
        assert made(configured({"a": 6}, *order)) == {"r": 6, "s": 6, "log": 6}


def test_repartition_topic_that_nobody_writes_is_invalid():
    with pytest.raises(KafkaError) as error:
        configured({"a": 1}, subtopology("0", "a"), subtopology("1", repartition=(topic_info("r"),)))
    assert error.value.code == ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_repartition_topics_in_a_circle_are_invalid():
    with pytest.raises(KafkaError) as error:
        configured(
            {"a": 1},
            subtopology("0", repartition=(topic_info("r"),), sinks=("s",)),
            subtopology("1", repartition=(topic_info("s"),), sinks=("r",)),
        )
    assert error.value.code == ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_repartition_topic_that_is_there_with_other_partitions_stands_in_the_way():
    found = configured(
        {"a": 2, "r": 3}, subtopology("0", "a", sinks=("r",)), subtopology("1", repartition=(topic_info("r"),))
    )
    assert status(found) == INCORRECTLY_PARTITIONED_TOPICS


# -- copartition groups -----------------------------------------------------------------------------------------------


def test_sources_that_are_joined_must_have_equal_partitions():
    joined = subtopology("0", "a", "b", together=(([0, 1], []),))
    assert status(configured({"a": 2, "b": 3}, joined)) == INCORRECTLY_PARTITIONED_TOPICS
    assert configured({"a": 2, "b": 2}, joined).is_ready


def test_repartition_topic_joined_with_a_source_takes_its_partitions():
    found = configured(
        {"a": 2, "b": 5},
        subtopology("0", "b", sinks=("r",)),
        subtopology("1", "a", repartition=(topic_info("r"),), together=(([0], [0]),)),
    )
    assert made(found) == {"r": 2}
    assert task_counts(found) == {"0": 5, "1": 2}


def test_fixed_repartition_topic_joined_with_a_source_must_have_its_partitions():
    found = configured(
        {"a": 2},
        subtopology("0", "a", sinks=("r",)),
        subtopology("1", "a", repartition=(topic_info("r", 3),), together=(([0], [0]),)),
    )
    assert status(found) == INCORRECTLY_PARTITIONED_TOPICS


def two_joined(first: Any, second: Any) -> ConfiguredTopology:
    return configured(
        {"a": 2, "b": 5},
        subtopology("0", "a", sinks=("r",)),
        subtopology("1", "b", sinks=("s",)),
        subtopology("2", repartition=(first, second), together=(([], [0, 1]),)),
    )


def test_repartition_topics_joined_take_the_larger_number():
    assert made(two_joined(topic_info("r"), topic_info("s"))) == {"r": 5, "s": 5}


def test_repartition_topics_joined_take_the_fixed_number():
    assert made(two_joined(topic_info("r", 3), topic_info("s"))) == {"r": 3, "s": 3}


def test_repartition_topics_joined_cannot_be_fixed_differently():
    assert status(two_joined(topic_info("r", 3), topic_info("s", 4))) == INCORRECTLY_PARTITIONED_TOPICS
    assert made(two_joined(topic_info("r", 4), topic_info("s", 4))) == {"r": 4, "s": 4}


def test_copartition_group_of_topics_that_are_not_there_is_invalid():
    with pytest.raises(KafkaError) as error:
        configured({"a": 2}, subtopology("0", "a", together=(([1], []),)))
    assert error.value.code == ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_config_that_a_topic_names_twice_is_invalid():
    changelog = topic_info("log", retention="1")
    changelog.topic_configs *= 2
    with pytest.raises(KafkaError, match="config of topic log is given twice") as error:
        configured({"a": 2}, subtopology("0", "a", changelogs=(changelog,)))
    assert error.value.code == ErrorCode.STREAMS_INVALID_TOPOLOGY


# -- topologies as values ---------------------------------------------------------------------------------------------


def test_topologies_are_the_same_in_any_order_of_their_subtopologies():
    one, other = subtopology("0", "a"), subtopology("1", "b")
    assert is_same(topology_value(topology(one, other)), topology_value(topology(other, one)))
    assert not is_same(topology_value(topology(one)), topology_value(topology(one, other)))
    assert not is_same(topology_value(topology(one)), topology_value(topology(subtopology("0", "c"))))
    assert not is_same(topology_value(topology(one)), topology_value(topology(one, epoch=1)))


def test_topics_of_a_topology():
    value = topology_value(
        topology(subtopology("0", "a", sinks=("x",), repartition=(topic_info("r"),), changelogs=(topic_info("log"),)))
    )
    assert required_topics(value) == {"a", "r", "log"}
    assert source_topics(value) == {"a": "0", "r": "0"}


# -- in a group -------------------------------------------------------------------------------------------------------

COUNTING = topology(
    subtopology("0", "in", sinks=("g-by-word-repartition",)),
    subtopology(
        "1",
        repartition=(topic_info("g-by-word-repartition", **{"cleanup.policy": "delete", "retention.ms": "-1"}),),
        changelogs=(topic_info("g-counts-changelog", **{"cleanup.policy": "compact"}),),
    ),
)


def test_group_waits_for_its_source_topics():
    with StreamsWorld() as world:
        a = world.member("a", shape=COUNTING)
        reply = a.join()
        assert (statuses(reply), reply.active_tasks) == ([1], [])
        assert (reply.member_epoch, world.describe().group_state) == (2, "NotReady")
        assert statuses(a.beat()) == [1]
        assert world.group().group_epoch == 2
        make_topic(world.client, "in", 2)
        reply = a.beat()
        assert statuses(reply) == [3]
        reply = a.beat()
        assert (statuses(reply), as_dict(reply.active_tasks)) == ([], {"0": [0, 1], "1": [0, 1]})
        assert world.describe().group_state == "Stable"


def test_internal_topics_are_made_with_their_settings():
    with StreamsWorld({"in": 3}) as world:
        a = world.member("a", shape=COUNTING)
        assert statuses(a.join()) == [3]
        topics = world.world.broker.metadata.topics
        assert {n: len(t.partitions) for n, t in topics.items() if n.startswith("g-")} == {
            "g-by-word-repartition": 3,
            "g-counts-changelog": 3,
        }
        assert topics["g-by-word-repartition"].configs == {"cleanup.policy": "delete", "retention.ms": "-1"}
        assert topics["g-counts-changelog"].configs == {"cleanup.policy": "compact"}
        assert statuses(a.beat()) == []
        shown = world.describe().topology.subtopologies[1]
        assert [(t.name, t.partitions) for t in shown.state_changelog_topics] == [("g-counts-changelog", 3)]


def test_internal_topics_that_cannot_be_made_are_told_with_the_reason():
    with StreamsWorld({"in": 3}) as world:
        bad = topic_info("g-log", **{"no.such.setting": "1"})
        a = world.member("a", shape=topology(subtopology("0", "in", changelogs=(bad,))))
        reply = a.join()
        assert statuses(reply) == [3]
        assert "g-log" in reply.status[0].status_detail
        assert "no.such.setting" in reply.status[0].status_detail
        assert statuses(a.beat()) == [3]


def test_topology_that_no_topic_could_mend_is_refused_and_makes_no_group():
    with StreamsWorld({"in": 1}) as world:
        a = world.member("a", shape=topology(subtopology("0", "in", repartition=(topic_info("r"),))))
        assert a.join().error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
        assert world.list() == {}


def test_source_that_is_deleted_takes_all_tasks_away():
    from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState

    with StreamsWorld({"in": 2}) as world:
        a = world.member("a")
        a.join()
        world.client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="in")], timeout_ms=1000), 6)
        reply = a.beat()
        assert (statuses(reply), as_dict(reply.active_tasks)) == ([1], {})
        assert world.describe().group_state == "NotReady"


def test_second_member_with_the_same_topology_joins():
    with StreamsWorld({"in": 2}) as world:
        world.member("a").join()
        assert world.member("b").join().error_code == 0


@pytest.mark.parametrize("epoch", [0, 1])
def test_other_topology_is_refused(epoch):
    with StreamsWorld({"in": 2, "other": 2}) as world:
        world.member("a").join()
        b = world.member("b", shape=topology(subtopology("0", "other"), epoch=epoch))
        assert b.join().error_code == ErrorCode.INVALID_REQUEST
        assert list(world.group().members) == ["a"]


def test_older_topology_is_let_in_and_told_that_it_is_stale():
    with StreamsWorld({"in": 2, "other": 2}) as world:
        world.member("a", shape=topology(subtopology("0", "in"), epoch=3)).join()
        b = world.member("b", shape=topology(subtopology("0", "other"), epoch=2))
        assert statuses(b.join()) == [0]
        assert statuses(b.beat()) == [0]
        assert world.describe().topology.epoch == 3
