"""What the versions of the streams group requests say: values of a heartbeat, descriptions of topologies (KIP-1331)."""

from __future__ import annotations

import pytest
from unit.coordinator.groups.streams.kit import StreamsWorld, as_dict, tasks

from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest
from protocol.messages.streams_group import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)


@pytest.fixture
def world():
    with StreamsWorld({"in": 4}) as made:
        yield made


@pytest.mark.parametrize(
    ("version", "lag", "legacy_lag"),
    [pytest.param(0, -1, 0, id="v0 has the old field"), pytest.param(1, 10_000, 0, id="v1 has 64 bits")],
)
def test_heartbeat_tells_how_often_offsets_are_wanted_and_how_far_a_task_may_lag(world, version, lag, legacy_lag):
    a = world.member("a", version=version)
    for reply in (a.join(), a.beat()):
        assert reply.task_offset_interval_ms == 60_000
        assert (reply.acceptable_recovery_lag, reply.acceptable_recovery_lag_legacy) == (lag, legacy_lag)
        assert reply.topology_description_required is False


@pytest.mark.parametrize("version", [0, 1])
def test_leave_and_error_tell_neither(world, version):
    a = world.member("a", version=version)
    a.join()
    for reply in (a.beat(member_epoch=9), a.leave()):
        assert (reply.task_offset_interval_ms, reply.heartbeat_interval_ms) == (0, 0)
        assert (reply.acceptable_recovery_lag, reply.acceptable_recovery_lag_legacy) == (-1, 0)


def test_warmup_tasks_may_be_owned_though_none_are_given(world):
    a = world.member("a")
    a.join()
    reply = a.send(member_epoch=a.epoch, active_tasks=[], standby_tasks=[], warmup_tasks=tasks({"0": [1]}))
    assert (reply.error_code, reply.active_tasks) == (0, None)


@pytest.mark.parametrize(
    ("asked", "status"), [pytest.param(False, 0, id="not asked"), pytest.param(True, 1, id="not stored")]
)
def test_description_of_a_topology_is_never_stored(world, asked, status):
    world.member("a").join()
    found, missing = world.describe("g", "missing", include_topology_description=asked)
    assert (found.topology_description_status, found.topology_description, found.assignor_name) == (
        status,
        None,
        "sticky",
    )
    assert as_dict(found.members[0].assignment.active_tasks) == {"0": [0, 1, 2, 3]}
    assert (missing.error_code, missing.topology_description_status, missing.assignor_name) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        0,
        None,
    )


def test_describe_version_0_knows_no_description(world):
    world.member("a").join()
    found = world.describe(version=0)
    assert (found.error_code, found.group_state, found.assignor_name) == (0, "Stable", None)


@pytest.mark.parametrize("group_id", ["", "g", "missing"])
def test_description_that_is_sent_is_unsupported_whatever_the_group(world, group_id):
    world.member("a").join()
    node = TopologyDescriptionNode(name="SOURCE", node_type=1, source_topics=["in"])
    described = TopologyDescription(
        subtopologies=[TopologyDescriptionSubtopology(subtopology_id="0", nodes=[node])], global_stores=[]
    )
    request = StreamsGroupTopologyDescriptionUpdateRequest(
        group_id=group_id, member_id="a", topology_epoch=0, topology_description=described
    )
    reply = world.client.call(request, 0)
    assert (reply.error_code, reply.error_message) == (
        ErrorCode.UNSUPPORTED_VERSION,
        "The broker has no streams group topology description plugin configured.",
    )
    assert world.describe().error_code == 0, "the connection is still open"


@pytest.mark.parametrize(
    ("release", "versions"),
    [("4.3", {88: (0, 0), 89: (0, 0)}), ("4.4", {88: (0, 1), 89: (0, 1), 93: (0, 0)})],
)
def test_older_release_has_the_versions_it_had(release, versions):
    with StreamsWorld({"in": 1}, as_version=release) as world:
        listed = world.client.call(
            ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3
        ).api_keys
        assert {k.api_key: (k.min_version, k.max_version) for k in listed if k.api_key in (88, 89, 93)} == versions
        reply = world.member("a", version=0).join()
        assert (reply.error_code, as_dict(reply.active_tasks)) == (0, {"0": [0]})
