"""AlterConfigs and IncrementalAlterConfigs: what each resource takes, refuses and forgets, as Apache Kafka does."""

from __future__ import annotations

import logging

import pytest
from configs_kit import APPEND, BROKER, DELETE, GROUP, LOGGER, SET, SUBTRACT, TOPIC, change, describe

from broker.handlers.configs import (
    alter_configs,
    incremental_alter_configs,
)
from protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)


def replace(broker, kind, name, configs, validate_only=False):
    pairs = [AlterConfigsRequestAlterableConfig(name=key, value=value) for key, value in configs.items()]
    resource = AlterConfigsRequestAlterConfigsResource(resource_type=kind, resource_name=name, configs=pairs)
    request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return broker.call(alter_configs, request).responses[0].error_code


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
