"""Settings: Kafka's keys and defaults, what is refused and how, and what changes while running."""

from __future__ import annotations

import typing

import pytest

from broker.config.config_values import TYPE_IDS, format_value, parse_value
from broker.config.settings import BROKER_KEYS, GROUP_KEYS, TOPIC_KEYS, BrokerConfig, ConfigError

PYTHON_TYPES = {
    "BOOLEAN": bool,
    "INT": int,
    "SHORT": int,
    "LONG": int,
    "DOUBLE": float,
    "STRING": str,
    "CLASS": str,
    "PASSWORD": str,
    "LIST": tuple,
}


@pytest.mark.parametrize(
    ("text", "value"), [("0.5d", 0.5), ("1F", 1.0), (".25", 0.25), ("5e-1D", 0.5), ("0x1p-2", 0.25), ("+0x.8P0f", 0.5)]
)
def test_numbers_are_written_as_java_reads_them(text, value):
    assert BrokerConfig.load({"log.cleaner.min.cleanable.ratio": text}).log_cleaner_min_cleanable_ratio == value


@pytest.mark.parametrize("text", ["d", "0.5dd", "0x1", "1_0", "0.5 d"])
def test_other_numbers_are_refused(text):
    with pytest.raises(ConfigError, match="Not a number of type DOUBLE"):
        BrokerConfig.load({"log.cleaner.min.cleanable.ratio": text})


def test_defaults_are_kafkas():
    config = BrokerConfig.load({})
    assert config.num_partitions == 1
    assert config.auto_create_topics_enable is True
    assert config.message_max_bytes == 1_048_588
    assert config.socket_request_max_bytes == 104_857_600
    assert config.offsets_topic_num_partitions == 50
    assert config.offsets_retention_minutes == 10_080
    assert config.connections_max_idle_ms == 600_000
    assert config.group_min_session_timeout_ms == 6000


def test_defaults_that_would_slow_tests_or_ask_for_three_nodes_are_not_kafkas():
    config = BrokerConfig.load({})
    assert config.group_initial_rebalance_delay_ms == 0
    assert config.group_consumer_assignment_interval_ms == 0
    assert config.group_streams_initial_rebalance_delay_ms == 0
    assert config.offsets_topic_replication_factor == 1
    assert config.transaction_state_log_replication_factor == 1


@pytest.mark.parametrize("rows", [TOPIC_KEYS, GROUP_KEYS, BROKER_KEYS], ids=["topic", "group", "broker"])
def test_rows_are_whole(rows):
    for key, (_, kind, default, rule, more, documentation) in rows.items():
        assert kind in TYPE_IDS, key
        assert documentation.endswith("."), key
        if default is not None:
            assert format_value(parse_value(key, kind, rule, default)) in (default, f"{default}.0"), key
        if rows is BROKER_KEYS:
            assert more in ("", "cluster", "node"), key
        elif more:
            assert more in BROKER_KEYS, key
            assert BROKER_KEYS[more][1] == kind or key == "streams.assignor.name", key  # of a list, the first


def test_declared_attributes_are_keys_of_their_type():
    config = BrokerConfig.load({})
    keys = {key.replace(".", "_"): row for key, row in BROKER_KEYS.items()}
    for name, hint in typing.get_type_hints(BrokerConfig).items():
        expected = PYTHON_TYPES[keys[name][1]]
        allowed = {typing.get_origin(part) or part for part in typing.get_args(hint)} or {hint}
        assert expected in allowed | {typing.get_origin(hint)}, name
        assert isinstance(getattr(config, name), expected | type(None)), name


def test_values_are_typed_and_trimmed():
    config = BrokerConfig.load(
        {
            "num.partitions": " 4 ",
            "auto.create.topics.enable": "FALSE",
            "listeners": "A://a:1 , B://b:2",
            "log.cleaner.min.cleanable.ratio": "0.25",
            "flush": "fsync",
        }
    )
    assert config.num_partitions == 4
    assert config.auto_create_topics_enable is False
    assert config.listeners == ("A://a:1", "B://b:2")
    assert config.log_cleaner_min_cleanable_ratio == 0.25
    assert config.flush == "fsync"


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("num.partitions", "four", "Not a number of type INT"),
        ("num.partitions", "", "Not a number of type INT"),
        ("num.partitions", "0", "at least 1"),
        ("num.partitions", "2147483648", "Not a number of type INT"),
        ("num.partitions", "1_000", "Not a number of type INT"),
        ("num.partitions", "٣", "Not a number of type INT"),
        ("flush", "sometimes", "memory, os, fsync"),
        ("auto.create.topics.enable", "yes", "true or false"),
        ("log.cleanup.policy", "compact,shred", "compact, delete"),
        ("log.cleaner.min.cleanable.ratio", "1.1", "no more than 1"),
        ("log.cleaner.min.cleanable.ratio", "nan", "number"),
        ("log.cleaner.min.cleanable.ratio", "half", "Not a number of type DOUBLE"),
        ("compression.gzip.level", "0", "between 1 and 9"),
        ("listeners", "", "must not be empty"),
        ("group.min.session.timeout.ms", "9999999", "group.max.session.timeout.ms"),
        ("offsets.topic.compression.codec", "9", "0 to 4"),
        ("offsets.topic.segment.bytes", "1048575", "at least 1048576"),
        ("transaction.state.log.segment.bytes", "1", "at least 1048576"),
    ],
)
def test_wrong_value_is_refused_with_key_value_and_reason(key, text, reason):
    with pytest.raises(ConfigError) as error:
        BrokerConfig.load({key: text})
    assert error.value.key == key
    assert reason in str(error.value)
    assert key in str(error.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited (-1)"),
        ({"log.retention.minutes": "0"}, "log.retention.ms must be unlimited (-1)"),
        ({"log.retention.hours": "0"}, "log.retention.ms must be unlimited (-1)"),
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater than or equal to 0"),
    ],
)
def test_age_that_cannot_be_meant_is_refused_in_the_words_of_kafka(settings, words):
    with pytest.raises(ConfigError, match="requirement failed") as error:
        BrokerConfig.load(settings)
    assert words in str(error.value)
    BrokerConfig.load({"log.retention.hours": "0", "log.retention.ms": "1"})


@pytest.mark.parametrize(("text", "is_number"), [(" 5", True), ("\t5\n", True), ("\x005", True), ("\u00a05", False)])
def test_spaces_around_a_value_are_those_that_java_trims(text, is_number):
    if is_number:
        assert BrokerConfig.load({"num.partitions": text}).num_partitions == 5
    else:
        with pytest.raises(ConfigError):
            BrokerConfig.load({"num.partitions": text})


def test_unknown_keys_are_kept_and_reported():
    config = BrokerConfig.load({"ssl.provider": "/x", "num.partitions": "2"})
    assert config.unknown == {"ssl.provider": "/x"}
    assert config.props == {"num.partitions": "2"}


def test_broker_id_is_the_older_name_of_node_id():
    assert BrokerConfig.load({"broker.id": "7"}).node_id == 7
    assert BrokerConfig.load({"broker.id": "7", "node.id": "8"}).node_id == 8
    assert BrokerConfig.load({"broker.id": "-1"}).node_id == 1


def test_data_dir_is_the_first_of_log_dirs():
    assert BrokerConfig.load({}).data_dir == "./data"
    assert BrokerConfig.load({"log.dir": "/a"}).data_dir == "/a"
    assert BrokerConfig.load({"log.dir": "/a", "log.dirs": "/b,/c"}).data_dir == "/b"


@pytest.mark.parametrize(
    ("settings", "milliseconds"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "1"}, 60_000),
        ({"log.retention.minutes": "1", "log.retention.ms": "5"}, 5),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-5"}, -1),
    ],
)
def test_topic_default_comes_from_the_finest_unit(settings, milliseconds):
    config = BrokerConfig.load(settings)
    assert config.topic_value("retention.ms", {}) == milliseconds
    assert config.topic_value("retention.ms", {"retention.ms": "77"}) == 77


def test_dynamic_settings_replace_those_before_and_leave_fixed_ones_alone():
    config = BrokerConfig.load({"max.connections": "5"})
    config.set_dynamic({"": {"max.connections": "6", "num.partitions": "9", "stranger": "x"}})
    assert (config.max_connections, config.num_partitions) == (6, 1)
    config.set_dynamic({"": {"max.connections": "6"}, "1": {"max.connections": "7"}})
    assert config.max_connections == 7
    config.set_dynamic({"": {"log.retention.ms": "0"}})
    assert config.topic_value("retention.ms", {}) == 604_800_000, "older versions kept what is refused now"
    config.set_dynamic({"2": {"max.connections": "8"}})
    assert config.max_connections == 5


def test_feature_levels_are_no_unknown_keys():
    config = BrokerConfig.load({"feature.transaction.version": "1"})
    assert (config.feature_levels, config.unknown) == ({"transaction.version": 1}, {})


@pytest.mark.parametrize(
    ("key", "text"),
    [("feature.transaction.version", "3"), ("feature.transaction.version", "x"), ("feature.nonsense", "0")],
)
def test_feature_level_that_cannot_be_is_refused(key, text):
    with pytest.raises(ConfigError, match=key):
        BrokerConfig.load({key: text})


def test_list_of_throttled_replicas_keeps_what_stands_in_it_twice():
    config = BrokerConfig.load({})
    assert config.topic_value(
        "leader.replication.throttled.replicas", {"leader.replication.throttled.replicas": "0:1,0:1"}
    ) == ("0:1", "0:1")
    assert config.topic_value("cleanup.policy", {"cleanup.policy": "delete,delete"}) == ("delete",)
