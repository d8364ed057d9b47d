"""DescribeConfigs and ListConfigResources, against what Apache Kafka answers."""

from __future__ import annotations

import pytest
from admin_broker import AdminBroker
from configs_kit import BROKER, GROUP, LOGGER, SET, TOPIC, change, describe

from broker.handlers.configs import (
    list_config_resources,
)
from broker.handlers.topics import create_topics
from protocol.messages.configs import (
    ListConfigResourcesRequest,
)
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest


def one(broker, kind, name, key, **more):
    """value, source and synonyms of one config."""
    (config,) = describe(broker, kind, name, [key], **more).configs
    return config.value, config.config_source, [(s.name, s.value, s.source) for s in config.synonyms]


def test_topic_has_kafkas_37_configs_with_defaults_and_synonyms(broker):
    result = describe(broker, TOPIC, "t")
    assert (result.error_code, len(result.configs)) == (0, 37)
    assert one(broker, TOPIC, "t", "retention.ms") == ("604800000", 5, [])  # as Kafka: hours are no synonym of ms
    assert one(broker, TOPIC, "t", "max.message.bytes") == (
        "1048588",
        5,
        [("message.max.bytes", "1048588", 5)],
    )
    assert one(broker, TOPIC, "t", "cleanup.policy")[0] == "delete"


def test_topic_config_sources_come_in_kafkas_order():
    broker = AdminBroker(log_retention_hours="2", message_max_bytes="2000")
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    broker.call(create_topics, CreateTopicsRequest(topics=[topic]))
    assert one(broker, TOPIC, "t", "retention.ms")[0] == "7200000"
    assert one(broker, TOPIC, "t", "max.message.bytes")[:2] == ("2000", 4)
    assert change(broker, BROKER, "", ("message.max.bytes", SET, "3000"))[0] == 0
    assert one(broker, TOPIC, "t", "max.message.bytes")[:2] == ("3000", 3)
    assert change(broker, BROKER, "1", ("message.max.bytes", SET, "4000"))[0] == 0
    assert change(broker, TOPIC, "t", ("max.message.bytes", SET, "5000"))[0] == 0
    assert one(broker, TOPIC, "t", "max.message.bytes") == (
        "5000",
        1,
        [
            ("max.message.bytes", "5000", 1),
            ("message.max.bytes", "4000", 2),
            ("message.max.bytes", "3000", 3),
            ("message.max.bytes", "2000", 4),
            ("message.max.bytes", "1048588", 5),
        ],
    )


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_types_and_documentation_are_told_from_v3(broker, version):
    result = describe(broker, TOPIC, "t", ["retention.ms"], version=version, documentation=True)
    (config,) = result.configs
    if version >= 3:
        assert config.config_type == 5
        assert "segment" in config.documentation
    assert describe(broker, TOPIC, "t", ["retention.ms"], synonyms=False).configs[0].synonyms == []


def test_every_config_has_documentation_and_type(broker):
    for kind, name in ((TOPIC, "t"), (BROKER, "1"), (GROUP, "g")):
        for config in describe(broker, kind, name, documentation=True).configs:
            assert config.documentation, config.name
            assert 1 <= config.config_type <= 9, config.name
            assert config.is_sensitive == (config.config_type == 9)
            assert config.value is None or not config.is_sensitive


def test_broker_configs_say_what_may_change(broker):
    read_only = {c.name: c.read_only for c in describe(broker, BROKER, "1").configs}
    assert read_only["num.partitions"] is True
    assert read_only["log.retention.ms"] is False
    assert len(read_only) > 150
    assert describe(broker, BROKER, "").configs == []


def test_unknown_broker_settings_are_told_without_their_values():
    broker = AdminBroker(my_secret="x")
    assert broker.config.unknown == {"my.secret": "x"}
    (config,) = describe(broker, BROKER, "1", ["my.secret"]).configs
    assert (config.value, config.is_sensitive, config.config_source) == (None, True, 4)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nope", 3),
        (TOPIC, "a b", 17),
        (BROKER, "9", 42),
        (BROKER, "x", 42),
        (LOGGER, "", 42),
        (LOGGER, "9", 42),
        (GROUP, "", 42),
        (99, "x", 42),
    ],
)
def test_describe_refuses_with_kafkas_code(broker, kind, name, code):
    result = describe(broker, kind, name)
    assert (result.error_code, result.configs) == (code, [])


def test_group_configs_are_told_with_their_sources(broker):
    change(broker, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
    assert one(broker, GROUP, "g", "consumer.session.timeout.ms") == (
        "50000",
        8,
        [("consumer.session.timeout.ms", "50000", 8), ("group.consumer.session.timeout.ms", "45000", 5)],
    )
    assert broker.metadata.group_value("g", "consumer.session.timeout.ms") == 50000
    assert len(describe(broker, GROUP, "other").configs) == 21


def test_resources_are_listed_by_type(broker):
    change(broker, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))

    def listed(version, *types):
        request = ListConfigResourcesRequest(resource_types=list(types))
        reply = broker.call(list_config_resources, request, version)
        return reply.error_code, {(r.resource_type, r.resource_name) for r in reply.config_resources}

    topics = {(TOPIC, "__consumer_offsets"), (TOPIC, "t")}
    assert listed(1) == (0, topics | {(GROUP, "g"), (BROKER, "1"), (LOGGER, "1")})
    assert listed(1, TOPIC) == (0, topics)
    assert listed(0) == (0, set())
    assert listed(1, 99) == (35, set())
