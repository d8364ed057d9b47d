"""Every setting of Kafka is in one class, obeyed ones have their test, and a start names those that do nothing."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import pytest
from noticed_by import NOTICED_BY

from broker.config.key_effects import OBEYED, WITHOUT_EFFECT
from broker.config.refused_keys import REFUSED, refusals
from broker.config.settings import BrokerConfig, ConfigError
from broker.handlers.config_rules import check_broker_configs
from broker.shell.cluster_plan import ClusterPlan
from broker.shell.setting_warnings import warn_of_settings
from protocol.errors import KafkaError

ROOT = Path(__file__).parents[3]
LINES = (ROOT / "tests/conformance/kafka_keys.txt").read_text().splitlines()
KAFKA_KEYS = {line.split()[1] for line in LINES if not line.startswith("#")}


def test_every_key_of_kafka_is_in_one_class():
    assert {*OBEYED, *WITHOUT_EFFECT, *REFUSED} == KAFKA_KEYS
    assert len(KAFKA_KEYS) == len(OBEYED) + len(WITHOUT_EFFECT) + len(REFUSED)


def test_each_key_that_is_obeyed_has_one_test_that_notices_it():
    noticed = [key for tests in NOTICED_BY.values() for keys in tests.values() for key in keys.split()]
    assert sorted(noticed) == sorted(OBEYED)


@pytest.mark.parametrize("path", NOTICED_BY)
def test_tests_that_notice_a_key_exist(path):
    tree = ast.parse((ROOT / path).read_text())
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert NOTICED_BY[path].keys() <= there


def warnings_of(caplog, **settings: str) -> list[str]:
    with caplog.at_level(logging.WARNING):
        warn_of_settings(BrokerConfig.load({key.replace("_", "."): value for key, value in settings.items()}))
    return [record.getMessage() for record in caplog.records]


def test_settings_that_do_nothing_are_named_once(caplog):
    found = warnings_of(
        caplog,
        num_io_threads="16",
        nonsense="1",
        group_coordinator_threads="9",
        num_partitions="3",
    )
    assert found == [
        "settings of Kafka that have no effect here: num.io.threads, group.coordinator.threads",
        "unknown settings, kept but without effect: nonsense",
    ]


def test_settings_with_their_default_are_not_named(caplog):
    assert warnings_of(caplog, num_io_threads="8", log_preallocate=" FALSE ") == []


def plan(**settings: str) -> ClusterPlan:
    properties = {key.replace("_", "."): value for key, value in settings.items()}
    return ClusterPlan("default", properties, data_dir="/nowhere", listen=None, flush="memory")


@pytest.mark.parametrize("key", REFUSED)
def test_key_that_cannot_be_obeyed_is_refused_unless_it_asks_for_nothing(key):
    harmless, advice = REFUSED[key]
    for value in harmless:
        assert refusals({key: f" {value} "}) == []
    assert refusals({key: "17"}) == [(key, advice)]
    assert refusals({f"listener.name.inside.{key}": "17"}) == [(f"listener.name.inside.{key}", advice)]
    assert refusals({f"listener.name.inside.scram-sha-256.{key}": "17"})


def test_start_names_all_that_it_cannot_obey_and_no_value():
    with pytest.raises(ConfigError) as error:
        plan(ssl_provider="Sesame", config_providers="Sesame")
    assert str(error.value).count("cannot be obeyed") == 2
    assert "Sesame" not in str(error.value)


def test_change_while_running_that_cannot_be_obeyed_is_an_error():
    with pytest.raises(KafkaError, match=r"ssl\.provider cannot be obeyed"):
        check_broker_configs({"listener.name.inside.ssl.provider": "Sesame"})


def test_what_testcontainers_sets_starts():
    """KafkaContainer of testcontainers-java 1.21, as server settings."""
    made = plan(
        listeners="PLAINTEXT://0.0.0.0:9092,BROKER://0.0.0.0:9093,CONTROLLER://0.0.0.0:9094",
        advertised_listeners="PLAINTEXT://localhost:32768,BROKER://kafka:9093",
        listener_security_protocol_map="BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        inter_broker_listener_name="BROKER",
        offsets_topic_replication_factor="1",
        offsets_topic_num_partitions="1",
        transaction_state_log_replication_factor="1",
        transaction_state_log_min_isr="1",
        log_flush_interval_messages="9223372036854775807",
        group_initial_rebalance_delay_ms="0",
        node_id="1",
        process_roles="broker,controller",
        controller_quorum_voters="1@localhost:9094",
        controller_listener_names="CONTROLLER",
    )
    assert [listener.protocol for listener in made.nodes[0].listeners.values()] == ["PLAINTEXT"] * 2  # no controller's
