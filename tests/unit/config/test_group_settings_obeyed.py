"""Settings of groups that no other test would miss: their bounds, defaults, assignors and time-outs."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, make_topic

from broker.config.settings import BROKER_KEYS, GROUP_KEYS, BrokerConfig, ConfigError
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest

GROUP = 32


def alter_group(client: Client, key: str, value: int) -> int:
    entry = IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=0, value=str(value))
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=GROUP, resource_name="g", configs=[entry]
    )
    answer = client.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    return int(answer.responses[0].error_code)


@pytest.mark.parametrize("kind", ["consumer", "streams", "share"])
@pytest.mark.parametrize("what", ["session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"])
def test_settings_of_a_group_lie_within_the_brokers_bounds(kind, what):
    low, high = (f"group.{kind}.{end}.{what}".replace(".", "_") for end in ("min", "max"))
    own = f"group.{kind}.{what}".replace(".", "_")
    settings = {f"group_{kind}_session_timeout_ms": "50000", low: "7000", high: "8000", own: "7500"}
    client = Client(World(**settings))
    assert [alter_group(client, f"{kind}.{what}", value) for value in (6999, 7000, 8000, 8001)] == [40, 0, 0, 40]


@pytest.mark.parametrize(
    ("what", "low", "high"),
    [
        ("delivery.count.limit", 3, 6),
        ("partition.max.record.locks", 200, 3000),
        ("record.lock.duration.ms", 20_000, 40_000),
    ],
)
def test_deliveries_locks_and_records_in_flight_of_a_share_group_are_bounded(what, low, high):
    bounds = {f"group_share_{end}_{what}".replace(".", "_"): str(n) for end, n in (("min", low), ("max", high))}
    client = Client(World(**bounds))
    values = (low - 1, low, high, high + 1)
    assert [alter_group(client, f"share.{what}", value) for value in values] == [40, 0, 0, 40]


@pytest.mark.parametrize(
    ("bound", "text", "key", "value", "code"),
    [
        ("group_streams_max_standby_replicas", "3", "streams.num.standby.replicas", 3, 0),
        ("group_streams_max_standby_replicas", "2", "streams.num.standby.replicas", 3, 40),
        ("group_streams_max_warmup_replicas", "3", "streams.num.warmup.replicas", 3, 0),
        ("group_streams_max_warmup_replicas", "2", "streams.num.warmup.replicas", 3, 40),
        ("group_streams_min_task_offset_interval_ms", "3", "streams.task.offset.interval.ms", 3, 0),
        ("group_streams_min_task_offset_interval_ms", "4", "streams.task.offset.interval.ms", 3, 40),
    ],
)
def test_numbers_of_a_streams_group_are_bounded(bound, text, key, value, code):
    client = Client(World(**{bound: text}))
    assert alter_group(client, key, value) == code


def test_assignor_that_is_not_listed_is_not_used():
    client = Client(World(group_consumer_assignors="range"))
    make_topic(client)
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        server_assignor="uniform",
        topic_partitions=[],
    )
    assert client.call(request, 1).error_code == 112


WITHOUT_EFFECT_OR_A_LIST = ("offload.enable", "num.warmup.replicas", "assignor.name")
GROUP_VALUES = {
    "streams.num.standby.replicas": ("2", 2),
    "streams.rack.aware.assignment.tags": ("zone, cluster", ("zone", "cluster")),
    "streams.task.offset.interval.ms": ("15500", 15_500),
    "share.delivery.count.limit": ("7", 7),
}


@pytest.mark.parametrize(
    "group_key",
    [key for key, row in GROUP_KEYS.items() if row[4] in BROKER_KEYS and not key.endswith(WITHOUT_EFFECT_OR_A_LIST)],
)
def test_broker_key_is_the_default_of_its_group_key(group_key):
    text, value = GROUP_VALUES.get(group_key, ("47000", 47_000) if "session" in group_key else ("5500", 5500))
    world = World(**{GROUP_KEYS[group_key][4].replace(".", "_"): text})
    make_topic(Client(world))
    shard = world.broker.groups.of("g")
    shard.require()
    assert shard.machine.group_value("g", group_key) == value


def test_broker_does_not_start_with_an_assignor_that_is_a_java_class():
    assert BrokerConfig.load({}).group_streams_assignors == ("sticky",)
    for names in ("org.example.Tasks", "sticky,org.example.Tasks", ""):
        with pytest.raises(ConfigError, match="sticky is the only one here"):
            BrokerConfig.load({"group.streams.assignors": names})


def join(client: Client, session_timeout_ms: int = 10_000) -> list[int]:
    """The error code of JoinGroup once it is answered."""
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=20_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    client.send(request, 3)
    client.world.run()
    return [each.error_code for each in client.replies()]


@pytest.mark.parametrize(("timeout_ms", "code"), [(6999, 26), (7000, 0), (8000, 0), (8001, 26)])
def test_session_timeout_of_classic_members_is_bounded(timeout_ms, code):
    world = World(group_min_session_timeout_ms="7000", group_max_session_timeout_ms="8000")
    assert join(Client(world), timeout_ms) == [code]


def test_first_rebalance_of_a_classic_group_waits_for_more_members():
    world = World(group_initial_rebalance_delay_ms="3000")
    client = Client(world)
    assert join(client) == []
    world.advance(2999)
    assert client.replies() == []
    world.advance(1)
    assert [each.error_code for each in client.replies()] == [0]


@pytest.mark.parametrize("later_ms", [0, 1])
@pytest.mark.parametrize("interval_ms", [15_000, 40_000])
def test_patterns_of_a_consumer_group_are_resolved_again_after_the_interval(interval_ms, later_ms):
    world = World(group_consumer_regex_refresh_interval_ms=str(interval_ms))
    client = Client(world)
    make_topic(client)

    def beat(epoch: int, **more: Any) -> Any:
        return client.call(ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch, **more), 1)

    beat(0, rebalance_timeout_ms=60_000, subscribed_topic_regex="t.*", topic_partitions=[])
    regexes = world.broker.groups.of("g").machine.groups["g"].regexes
    first_ms = regexes["t.*"].timestamp_ms
    world.advance(interval_ms + later_ms)
    assert beat(1).error_code == 0
    assert (regexes["t.*"].timestamp_ms > first_ms) is bool(later_ms)
