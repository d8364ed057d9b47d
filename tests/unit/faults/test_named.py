"""What a request names, by which faults and the journal find it."""

from __future__ import annotations

from broker.faults.named import named_in
from protocol.messages.streams_group import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopicInfo,
    StreamsGroupHeartbeatRequestTopology,
)


def test_topics_of_the_topology_of_a_streams_group_are_named():
    subtopology = StreamsGroupHeartbeatRequestSubtopology(
        subtopology_id="0",
        source_topics=["in"],
        source_topic_regex=[],
        state_changelog_topics=[StreamsGroupHeartbeatRequestTopicInfo(name="changes", topic_configs=[])],
        repartition_sink_topics=["sink"],
        repartition_source_topics=[],
        copartition_groups=[],
    )
    topology = StreamsGroupHeartbeatRequestTopology(epoch=0, subtopologies=[subtopology])
    request = StreamsGroupHeartbeatRequest(group_id="g", member_id="m", topology=topology)
    assert named_in(request, lambda topic_id: "").topics == {"in", "changes", "sink"}
