"""Unknown settings, and which known one each may stand for."""

from __future__ import annotations

import logging

import pytest
from core_broker import Client, World

from broker.config.near_names import did_you_mean
from broker.config.settings import BROKER_KEYS, TOPIC_KEYS, BrokerConfig
from broker.shell.setting_warnings import warn_of_settings
from protocol.errors import ErrorCode
from protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest


@pytest.mark.parametrize(
    ("key", "known", "question"),
    [
        ("num.partition", BROKER_KEYS, " Did you mean num.partitions?"),
        ("NUM_PARTITIONS", BROKER_KEYS, " Did you mean num.partitions?"),
        ("retention.ms", BROKER_KEYS, " Did you mean log.retention.ms?"),
        ("log.retention.ms", TOPIC_KEYS, " Did you mean retention.ms?"),
        ("retention.sm", TOPIC_KEYS, " Did you mean retention.ms?"),
        ("my.plugin.colour", BROKER_KEYS, ""),
    ],
)
def test_unknown_setting_is_matched_with_a_known_one(key, known, question):
    assert did_you_mean(key, known) == question


def test_unknown_broker_setting_is_asked_about_at_the_start(caplog):
    with caplog.at_level(logging.WARNING):
        warn_of_settings(BrokerConfig.load({"num.partition": "3", "my.plugin.colour": "blue"}))
    assert caplog.messages == [
        "unknown settings, kept but without effect: num.partition, my.plugin.colour",
        "num.partition is no setting of a broker. Did you mean num.partitions?",
    ]


def test_unknown_topic_setting_is_refused_with_the_question():
    client = Client(World("os"))
    topic = CreatableTopic(
        name="t", num_partitions=1, replication_factor=1, configs=[CreatableTopicConfig(name="retention.sm", value="1")]
    )
    (answer,) = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=1000)).topics
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert answer.error_message == "Unknown topic config name: retention.sm. Did you mean retention.ms?"
