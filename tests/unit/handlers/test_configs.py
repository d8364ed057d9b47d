"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources, against what Apache Kafka answers."""

from __future__ import annotations

import logging

import pytest
from admin_broker import AdminBroker

from broker.handlers.configs import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from broker.handlers.topics import create_topics
from protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    ListConfigResourcesRequest,
)
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def broker():
    broker = AdminBroker()
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    broker.call(create_topics, CreateTopicsRequest(topics=[topic]))
    yield broker
    broker.check_reload()


def describe(broker, kind, name, keys=None, version=4, synonyms=True, documentation=False):
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    (result,) = broker.call(describe_configs, request, version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def one(broker, kind, name, key, **more):
    """value, source and synonyms of one config."""
    (config,) = describe(broker, kind, name, [key], **more).configs
    return config.value, config.config_source, [(s.name, s.value, s.source) for s in config.synonyms]


def change(broker, kind, name, *operations, validate_only=False, version=1):
    """(code, message) of an incremental change; an operation is (key, operation, value)."""
    configs = [
        IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in operations
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (result,) = broker.call(incremental_alter_configs, request, version).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result.error_code, result.error_message


def replace(broker, kind, name, configs, validate_only=False):
    pairs = [AlterConfigsRequestAlterableConfig(name=key, value=value) for key, value in configs.items()]
    resource = AlterConfigsRequestAlterConfigsResource(resource_type=kind, resource_name=name, configs=pairs)
    request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return broker.call(alter_configs, request).responses[0].error_code


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


@pytest.mark.parametrize(
    ("operations", "code", "words"),
    [
        ([("retention.ms", SET, "abc")], 40, "retention.ms: Not a number of type LONG"),
        ([("retention.ms", SET, "-5")], 40, "Value must be at least -1"),
        ([("nope", SET, "1")], 40, "Unknown topic config name: nope"),
        ([("retention.ms", APPEND, "5")], 40, "type is not LIST"),
        ([("nope", APPEND, "5")], 40, "type is not LIST"),
        ([("cleanup.policy", APPEND, "foo")], 40, "must be one of: compact, delete"),
        ([("cleanup.policy", SET, "delete,,")], 40, "must not be empty"),
        ([("compression.type", SET, "foo")], 40, "must be one of: uncompressed, zstd"),
        ([("compression.gzip.level", SET, "10")], 40, "between 1 and 9 or equal to -1"),
        ([("compression.zstd.level", SET, "30")], 40, "no more than 22"),
        ([("preallocate", SET, "maybe")], 40, "either true or false"),
        ([("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "5")], 40, "conflict"),
        ([("remote.storage.enable", SET, "true")], 40, "iered"),
        ([("retention.ms", SET, "1"), ("retention.ms", SET, "2")], 42, "duplicate"),
        ([("retention.ms", SET, None)], 42, "Null value"),
        ([("retention.ms", 9, "1")], 42, "operation"),
        ([("leader.replication.throttled.replicas", SET, "foo")], 40, "partitionId"),
        ([("max.message.bytes", SET, "99999999999")], 40, "Not a number of type INT"),
        ([("min.cleanable.dirty.ratio", SET, "1.5")], 40, "no more than 1"),
        ([("retention.ms", SET, "1" * 32_000)], 40, "111"),
        ([("n" * 32_000, SET, "1")], 40, "Unknown"),
    ],
)
def test_topic_change_refused_with_kafkas_code_changes_nothing(broker, operations, code, words):
    found, message = change(broker, TOPIC, "t", ("segment.ms", SET, "77"), *operations)
    assert found == code
    assert words in message
    assert broker.metadata.topics["t"].configs == {}


@pytest.mark.parametrize(("name", "code"), [("nope", 3), ("", 42), ("a b", 17)])
def test_topic_change_of_no_topic_is_refused(broker, name, code):
    assert change(broker, TOPIC, name, ("retention.ms", SET, "1"))[0] == code


def test_topic_change_sets_deletes_appends_and_subtracts(broker):
    configs = broker.metadata.topics["t"].configs
    assert change(broker, TOPIC, "t", ("retention.ms", SET, "5"), ("segment.ms", SET, "6")) == (0, None)
    assert configs == {"retention.ms": "5", "segment.ms": "6"}
    assert change(broker, TOPIC, "t", ("retention.ms", DELETE, None))[0] == 0
    assert change(broker, TOPIC, "t", ("cleanup.policy", APPEND, "compact"))[0] == 0
    assert configs == {"segment.ms": "6", "cleanup.policy": "delete,compact"}
    assert change(broker, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete"))[0] == 0
    assert broker.metadata.value(broker.metadata.topics["t"], "cleanup.policy") == ("compact",)


def test_topic_value_cannot_grow_over_the_longest_string(broker):
    key = "leader.replication.throttled.replicas"
    assert change(broker, TOPIC, "t", (key, SET, "1:1," * 5000 + "1:1"))[0] == 0
    assert change(broker, TOPIC, "t", (key, SET, ",".join(f"1:{i}" for i in range(4000))))[0] == 0
    code, message = change(broker, TOPIC, "t", (key, APPEND, ",".join(f"2:{i}" for i in range(2000))))
    assert (code, "32767" in message) == (40, True)


def test_change_without_effect_writes_nothing(broker):
    change(broker, TOPIC, "t", ("retention.ms", SET, "5"))
    before = len(broker.batches)
    assert change(broker, TOPIC, "t", ("retention.ms", SET, "5"), ("segment.ms", DELETE, None))[0] == 0
    assert change(broker, TOPIC, "t", ("retention.ms", SET, "6"), validate_only=True)[0] == 0
    assert len(broker.batches) == before


def test_replace_removes_what_is_not_sent(broker):
    change(broker, TOPIC, "t", ("retention.ms", SET, "5"), ("segment.ms", SET, "6"))
    assert replace(broker, TOPIC, "t", {"segment.ms": "7"}, validate_only=True) == 0
    assert replace(broker, TOPIC, "t", {"segment.ms": "8"}) == 0
    assert broker.metadata.topics["t"].configs == {"segment.ms": "8"}
    assert replace(broker, TOPIC, "t", {"segment.ms": None}) == 42
    assert replace(broker, LOGGER, "1", {"root": "INFO"}) == 42


@pytest.mark.parametrize(
    ("name", "operation", "code"),
    [
        ("1", ("num.partitions", SET, "3"), 42),
        ("", ("num.partitions", SET, "3"), 42),
        ("", ("nonsense.key", SET, "3"), 0),
        ("", ("nonsense.key", APPEND, "3"), 40),
        ("", ("log.retention.ms", SET, "abc"), 42),
        ("", ("log.retention.ms", SET, "5000"), 0),
        ("", ("log.retention.ms", SET, "-2"), 0),
        ("", ("log.retention.ms", SET, "0"), 42),
        ("", ("log.roll.ms", SET, "0"), 42),
        ("", ("log.roll.jitter.ms", SET, "-5"), 42),
        ("9", ("log.retention.ms", SET, "5000"), 42),
        ("abc", ("log.retention.ms", SET, "5000"), 42),
        ("", ("log.retention.ms", 7, "5000"), 42),
        ("", ("log.cleaner.threads", SET, "-5"), 42),
        ("", ("listeners", SET, "PLAINTEXT://:1"), 42),
    ],
)
def test_broker_change_is_answered_as_kafka_does(broker, name, operation, code):
    assert change(broker, BROKER, name, operation)[0] == code


def test_broker_change_reaches_settings_and_topics_and_can_be_taken_back(broker):
    topic = broker.metadata.topics["t"]
    assert broker.metadata.value(topic, "retention.ms") == 604_800_000
    change(broker, BROKER, "", ("log.retention.ms", SET, "5000"), ("max.connections", SET, "7"))
    assert broker.config.max_connections == 7
    assert broker.metadata.value(topic, "retention.ms") == 5000
    change(broker, BROKER, "1", ("max.connections", SET, "8"))
    assert broker.config.max_connections == 8
    change(broker, BROKER, "1", ("max.connections", DELETE, None))
    change(broker, BROKER, "", ("log.retention.ms", DELETE, None), ("max.connections", DELETE, None))
    assert broker.config.max_connections == 2**31 - 1
    assert broker.metadata.value(topic, "retention.ms") == 604_800_000


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (("consumer.session.timeout.ms", SET, "50000"), 0),
        (("consumer.session.timeout.ms", SET, "1"), 40),
        (("consumer.session.timeout.ms", SET, "1000000"), 40),
        (("streams.num.standby.replicas", SET, "2"), 0),
        (("streams.num.standby.replicas", SET, "3"), 40),
        (("nope", SET, "1"), 40),
        (("consumer.heartbeat.interval.ms", SET, "x"), 40),
    ],
)
def test_group_change_keeps_to_the_brokers_bounds(broker, operation, code):
    assert change(broker, GROUP, "g", operation)[0] == code
    assert change(broker, GROUP, "", operation)[0] == 42


@pytest.mark.parametrize(
    ("duration", "code"),
    [
        *((text, 0) for text in ("PT1H", "P1D", "pt1h", "+PT1H", "P1DT2H4.5S", "PT1.S", "PT1,5S", "P-1DT25H", "PT0S")),
        *((text, 40) for text in ("", "P", "PT", "P1DT", "P1Y", "P1W", "Px", "PT1", "PT1.5H", "1H", "PT1.1234567891S")),
        *((text, 40) for text in ("PT-1H", "-PT1H", "P1DT-25H", "P106751991167301D", "P" + "9" * 5000 + "D")),
    ],
)
def test_duration_that_java_does_not_read_or_that_is_negative_is_refused(broker, duration, code):
    assert change(broker, GROUP, "g", ("share.auto.offset.reset", SET, f"by_duration:{duration}"))[0] == code


def test_group_configs_are_told_with_their_sources(broker):
    change(broker, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
    assert one(broker, GROUP, "g", "consumer.session.timeout.ms") == (
        "50000",
        8,
        [("consumer.session.timeout.ms", "50000", 8), ("group.consumer.session.timeout.ms", "45000", 5)],
    )
    assert broker.metadata.group_value("g", "consumer.session.timeout.ms") == 50000
    assert len(describe(broker, GROUP, "other").configs) == 21


@pytest.fixture
def levels():
    loggers = [logging.getLogger(name) for name in ("momus", "momus.test_configs")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.mark.usefixtures("levels")
def test_logger_levels_change_at_once_and_leave_no_record(broker):
    before = len(broker.batches)
    assert change(broker, LOGGER, "1", ("momus.test_configs", SET, "DEBUG"), ("root", SET, "WARN"))[0] == 0
    told = {c.name: (c.value, c.config_source) for c in describe(broker, LOGGER, "1").configs}
    assert told["momus.test_configs"] == ("DEBUG", 6)
    assert told["root"] == ("WARN", 6)
    assert change(broker, LOGGER, "1", ("momus.test_configs", DELETE, None))[0] == 0
    assert logging.getLogger("momus.test_configs").level == logging.NOTSET
    assert len(broker.batches) == before


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (("no.such.logger", SET, "DEBUG"), 40),
        (("root", SET, "LOUD"), 40),
        (("root", DELETE, None), 42),
        (("root", APPEND, "INFO"), 42),
    ],
)
def test_logger_change_refused_with_kafkas_code(broker, operation, code):
    assert change(broker, LOGGER, "1", operation)[0] == code


def test_resources_are_changed_in_one_batch_and_named_once(broker):
    def resource(kind, name):
        config = IncrementalAlterConfigsRequestAlterableConfig(
            name="retention.ms" if kind == TOPIC else "consumer.session.timeout.ms",
            config_operation=SET,
            value="46000",
        )
        return IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[config]
        )

    before = len(broker.batches)
    request = IncrementalAlterConfigsRequest(
        resources=[resource(TOPIC, "t"), resource(GROUP, "g"), resource(GROUP, "h"), resource(GROUP, "h")]
    )
    replies = broker.call(incremental_alter_configs, request).responses
    assert [r.error_code for r in replies] == [0, 0, 42, 42]
    assert len(broker.batches) == before + 1


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
