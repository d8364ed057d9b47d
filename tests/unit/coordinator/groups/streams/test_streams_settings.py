"""Settings of streams groups: rack-aware tags, how often offsets are wanted, the assignor, and which ones are shown.

Codes and texts are those of Apache Kafka 4.4.0, asked with the same requests.
"""

from __future__ import annotations

from typing import Any

import pytest
from unit.coordinator.groups.streams.kit import StreamsWorld, statuses

from broker.config.refused_keys import refusals
from protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.streams_group import StreamsGroupHeartbeatRequestKeyValue

GROUP, BROKER = 32, 4
TAGS = "streams.rack.aware.assignment.tags"


@pytest.fixture
def world():
    with StreamsWorld({"in": 4}) as made:
        yield made


def alter(world: StreamsWorld, key: str, value: str | None, resource: int = GROUP) -> tuple[int, str | None]:
    change = IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=value is None, value=value)
    wanted = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=resource, resource_name="g" if resource == GROUP else "1", configs=[change]
    )
    (reply,) = world.client.call(IncrementalAlterConfigsRequest(resources=[wanted]), 1).responses
    return reply.error_code, reply.error_message


def described(world: StreamsWorld, resource: int, name: str) -> dict[str, Any]:
    asked = DescribeConfigsResource(resource_type=resource, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[asked], include_synonyms=True)
    return {c.name: c for c in world.client.call(request, 4).results[0].configs}


def tags(*keys: str) -> list[StreamsGroupHeartbeatRequestKeyValue]:
    return [StreamsGroupHeartbeatRequestKeyValue(key=key, value="v") for key in keys]


# -- tags -------------------------------------------------------------------------------------------------------------


def test_tags_move_the_group_epoch_and_are_logged_with_the_group(world):
    a = world.member("a")
    a.join()
    before = world.group().group_epoch
    assert alter(world, TAGS, "zone, cluster") == (0, None)
    reply = a.beat()
    assert (world.group().group_epoch, reply.member_epoch) == (before + 1, before + 1)
    logged = {"num.standby.replicas": "0", "rack.aware.assignment.tags": "zone,cluster"}
    assert world.group().last_assignment_configs == logged
    a.beat()
    assert world.group().group_epoch == before + 1
    world.restart()
    assert world.group().last_assignment_configs == logged
    alter(world, TAGS, None)
    a.beat()
    assert world.group().last_assignment_configs == {"num.standby.replicas": "0"}


@pytest.mark.parametrize(
    ("version", "has", "expected"),
    [
        pytest.param(1, (), "[zone, cluster]", id="none of them"),
        pytest.param(1, ("cluster", "other"), "[zone]", id="one of them"),
        pytest.param(1, ("zone", "cluster"), None, id="all"),
        pytest.param(0, (), None, id="v0 knows no such status"),
    ],
)
def test_member_without_the_tags_is_told(version, has, expected):
    with StreamsWorld({"in": 4}, group_streams_rack_aware_assignment_tags="zone,cluster") as world:
        a = world.member("a", version=version)
        a.join(client_tags=tags(*has))
        reply = a.beat()
        found = [s.status_detail for s in reply.status]
        text = "Missing required client tags for rack-aware standby assignment: {}. Configure them via "
        text += "'client.tag.<tagKey>' in your Streams config."
        assert found == ([] if expected is None else [text.format(expected)])
        assert statuses(reply) == ([] if expected is None else [6])


# -- offsets, assignor ------------------------------------------------------------------------------------------------


def test_heartbeat_tells_what_the_group_is_given(world):
    a = world.member("a")
    a.join()
    assert alter(world, "streams.task.offset.interval.ms", "15000") == (0, None)
    assert alter(world, "streams.acceptable.recovery.lag", str(1 << 40)) == (0, None)
    reply = a.beat()
    assert (reply.task_offset_interval_ms, reply.acceptable_recovery_lag) == (15_000, 1 << 40)


def test_assignor_of_a_group_is_the_only_one_there_is(world):
    world.member("a").join()
    assert alter(world, "streams.assignor.name", "sticky") == (0, None)
    assert world.describe().assignor_name == "sticky"
    assert described(world, GROUP, "g")["streams.assignor.name"].config_source == 8


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (TAGS, "a,a", f"{TAGS} must not contain duplicate tag keys."),
        (TAGS, "a, a", f"{TAGS} must not contain duplicate tag keys."),
        (
            "streams.assignor.name",
            "x",
            "streams.assignor.name 'x' is not a registered task assignor. Registered assignors are: [sticky].",
        ),
        (
            "streams.assignor.name",
            "",
            "streams.assignor.name '' is not a registered task assignor. Registered assignors are: [sticky].",
        ),
        (
            "streams.task.offset.interval.ms",
            "14999",
            "streams.task.offset.interval.ms must be greater than or equal to 15000",
        ),
        (
            "streams.task.offset.interval.ms",
            "0",
            "Invalid value 0 for configuration streams.task.offset.interval.ms: Value must be at least 1",
        ),
        ("streams.num.warmup.replicas", "21", "streams.num.warmup.replicas must be less than or equal to 20"),
        ("streams.num.standby.replicas", "3", "streams.num.standby.replicas must be less than or equal to 2"),
        (
            "streams.acceptable.recovery.lag",
            "-1",
            "Invalid value -1 for configuration streams.acceptable.recovery.lag: Value must be at least 0",
        ),
        (
            "streams.assignor.offload.enable",
            "x",
            "Invalid value x for configuration streams.assignor.offload.enable: Expected value to be either true or "
            "false",
        ),
        (
            "streams.session.timeout.ms",
            "1",
            "streams.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        ("share.delivery.count.limit", "99", "share.delivery.count.limit must be in the range 2 to 10 inclusive."),
    ],
)
def test_setting_of_a_group_that_cannot_be_is_refused_in_kafkas_words(world, key, value, text):
    assert alter(world, key, value) == (40, text)


def test_empty_tag_is_refused(world):
    assert alter(world, TAGS, "a,")[0] == 40
    assert alter(world, TAGS, "") == (0, None)


def test_plugin_for_descriptions_is_refused_at_the_start():
    key = "group.streams.topology.description.plugin.class"
    assert refusals({key: ""}) == []
    assert [found for found, _ in refusals({key: "org.example.Plugin"})] == [key]


# -- what is shown ----------------------------------------------------------------------------------------------------


def test_internal_keys_of_a_group_are_shown_only_when_they_are_set(world):
    keys = (
        ("streams.task.offset.interval.ms", "20000"),
        ("streams.num.warmup.replicas", "3"),
        ("streams.acceptable.recovery.lag", "5"),
        ("streams.assignor.offload.enable", "false"),
        ("consumer.assignor.offload.enable", "false"),
        ("share.assignor.offload.enable", "false"),
    )
    before = described(world, GROUP, "g")
    assert (len(before), {key for key, _ in keys} & before.keys()) == (21, set())
    for key, value in keys:
        assert alter(world, key, value) == (0, None)
    after = described(world, GROUP, "g")
    for key, value in keys:
        found = after[key]
        assert (found.value, found.config_source, found.read_only) == (value, 8, False)
        assert [(s.name, s.source) for s in found.synonyms] == [(key, 8), (f"group.{key}", 5)]


def test_internal_keys_of_a_broker_are_shown_only_when_they_are_set():
    with StreamsWorld({"in": 1}, group_streams_acceptable_recovery_lag="77") as world:
        found = described(world, BROKER, "1")
        lag = found["group.streams.acceptable.recovery.lag"]
        assert (lag.value, lag.config_source, lag.read_only) == ("77", 4, True)
        assert "group.streams.num.warmup.replicas" not in found
        assert "group.streams.assignor.offload.enable" not in found
        assert (found["group.streams.assignors"].value, found["group.streams.assignors"].config_type) == ("sticky", 7)
        tags_of_all = found["group.streams.rack.aware.assignment.tags"]
        assert (tags_of_all.value, tags_of_all.read_only) == ("", True)
        plugin = found["group.streams.topology.description.plugin.class"]
        assert (plugin.value, plugin.config_type, plugin.synonyms) == (None, 8, [])
        assert alter(world, "group.streams.assignor.offload.enable", "false", BROKER)[0] == 0
        assert described(world, BROKER, "1")["group.streams.assignor.offload.enable"].config_source == 2
