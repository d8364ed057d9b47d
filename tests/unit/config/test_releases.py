"""`as.version`: a cluster that answers as an older Apache Kafka does, and refuses what that would not know."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request

from broker.config.config_values import ConfigError
from broker.config.release_tables import RELEASES
from broker.config.releases import release_like, release_named
from broker.config.settings import BrokerConfig
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest, FeatureUpdateKey, UpdateFeaturesRequest
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest

NAMES = [name for name, _, _ in RELEASES]
HELLO = ApiVersionsRequest(client_software_name="a", client_software_version="1")


def world_of(release: str, **settings: str) -> World:
    return World("os", as_version=release, **settings)


def versions_of(world: World, version: int = 0) -> dict[int, tuple[int, int]]:
    answer = Client(world).call(HELLO, version)
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


def features_of(world: World, version: int = 3) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    answer = Client(world).call(HELLO, version)
    supported = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
    return supported, {each.name: each.max_version_level for each in answer.finalized_features}


@pytest.mark.parametrize("name", NAMES)
def test_versions_are_those_of_the_release_as_far_as_they_are_served(name):
    everything = versions_of(World("os"))
    theirs = release_named(name)
    assert theirs is not None
    found = versions_of(world_of(name))
    for key, (_, newest) in found.items():
        assert newest == min(theirs.apis[key][1], everything[key][1])
    absent = everything.keys() - found.keys()
    assert all(key not in theirs.apis or theirs.apis[key][1] < everything[key][0] for key in absent)
    assert {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.METADATA,
        ApiKey.OFFSET_COMMIT,
        ApiKey.INIT_PRODUCER_ID,
    } <= found.keys()


@pytest.mark.parametrize("shortcuts", [True, False])
def test_version_that_the_release_does_not_know_is_refused_by_shortcuts_too(shortcuts):
    world = World("os", shortcuts=shortcuts, as_version="2.1")
    client = Client(world)
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert client.call(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 3).topics[0].error_code == 0
    answer = client.call(commit_request("g", {0: 5}), 6)
    assert [p.error_code for t in answer.topics for p in t.partitions] == [0]
    for version in (7, 8):
        client = Client(world)
        client.send(commit_request("g", {0: 6}), version)
        world.run()
        assert client.closed
    modern = World("os", shortcuts=shortcuts)
    make_topic(client := Client(modern), "t", 1)
    assert client.call(commit_request("g", {0: 6}), 8).topics


def test_api_that_the_release_does_not_have_is_refused():
    client = Client(world_of("3.6"))
    client.send(ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", topic_partitions=None), 0)
    client.world.run()
    assert client.closed


@pytest.mark.parametrize(("name", "code"), [("3.9", ErrorCode.UNSUPPORTED_VERSION), ("4.0", ErrorCode.NONE)])
def test_consumer_protocol_is_switched_on_since_4_0(name, code):
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="" if name == "3.9" else "m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert Client(world_of(name)).call(beat, 0 if name == "3.9" else 1).error_code == code


def test_newer_hello_is_answered_with_the_range_of_the_release():
    answer = Client(world_of("2.1")).call(HELLO, 0)
    assert answer.error_code == 0
    client = Client(world_of("2.1"))
    client.send(HELLO, 4)
    client.asked[-1] = (ApiKey.API_VERSIONS, 0)
    client.world.run()
    (answer,) = client.replies()
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(each.api_key, each.max_version) for each in answer.api_keys] == [(ApiKey.API_VERSIONS, 2)]


@pytest.mark.parametrize(
    ("name", "version", "supported", "finalized"),
    [
        ("2.8", 3, {}, {}),
        ("3.3", 3, {"metadata.version": (7, 7)}, {"metadata.version": 7}),
        ("3.9", 4, {"metadata.version": (7, 21)}, {"metadata.version": 21}),
        (
            "4.1",
            4,
            {
                "metadata.version": (7, 27),
                "eligible.leader.replicas.version": (0, 1),
                "group.version": (0, 1),
                "kraft.version": (0, 1),
                "share.version": (0, 1),
                "transaction.version": (0, 2),
            },
            {
                "metadata.version": 27,
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "transaction.version": 2,
            },
        ),
    ],
)
def test_features_are_those_of_a_new_cluster_of_the_release(name, version, supported, finalized):
    assert features_of(world_of(name), version) == (supported, finalized)


def test_feature_of_a_later_release_can_neither_be_set_nor_upgraded_to():
    with pytest.raises(ConfigError, match=r"feature\.group\.version"):
        BrokerConfig.load({"as.version": "3.9", "feature.group.version": "1"})
    assert BrokerConfig.load({"as.version": "4.1", "feature.share.version": "1"}).feature_levels["share.version"] == 1
    update = UpdateFeaturesRequest(
        timeout_ms=1000,
        feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=1, upgrade_type=1)],
    )
    answer = Client(world_of("3.9")).call(update, 1)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("text", ["3.9", "3.9.1", " 3.9 "])
def test_release_is_named_with_or_without_its_patch(text):
    found = release_named(text)
    assert found is not None
    assert found.name == "3.9"


@pytest.mark.parametrize("text", ["2.0", "5.0", "3", "latest", "3.9.x", "3.9.1.1"])
def test_release_that_is_not_known_is_refused_with_those_that_are(text):
    with pytest.raises(ConfigError, match=r"must be a release of Apache Kafka from 2\.1 to 4\.4"):
        release_named(text)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"3.3"}))
def test_release_is_recognised_by_its_versions(name):
    assert release_like(versions_of(world_of(name))) == name  # 3.3 and 3.4 answer the same
