"""Every setting of Kafka is in one class, obeyed ones have their test, and a start names those that do nothing."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import pytest

from broker.config.key_effects import NOTICED_BY, OBEYED, SECURITY, WITHOUT_EFFECT
from broker.config.settings import BrokerConfig
from broker.shell.setting_warnings import warn_of_settings

ROOT = Path(__file__).parents[3]
LINES = (ROOT / "tests/conformance/kafka_keys.txt").read_text().splitlines()
KAFKA_KEYS = {line.split()[1] for line in LINES if not line.startswith("#")}


def test_every_key_of_kafka_is_in_one_class():
    assert {*OBEYED, *WITHOUT_EFFECT, *SECURITY} == KAFKA_KEYS
    assert len(KAFKA_KEYS) == len(OBEYED) + len(WITHOUT_EFFECT) + len(SECURITY)


@pytest.mark.parametrize("path", NOTICED_BY)
def test_tests_that_notice_a_key_exist(path):
    tree = ast.parse((ROOT / path).read_text())
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert NOTICED_BY[path].keys() <= there


def warnings_of(caplog, **settings: str) -> list[str]:
    with caplog.at_level(logging.WARNING):
        warn_of_settings(BrokerConfig.load({key.replace("_", "."): value for key, value in settings.items()}))
    return [record.getMessage() for record in caplog.records]


def test_settings_that_do_nothing_are_named_once(caplog):
    found = warnings_of(
        caplog,
        num_io_threads="16",
        ssl_keystore_location="/k",
        nonsense="1",
        group_coordinator_threads="9",
        num_partitions="3",
    )
    assert found == [
        "settings that ask for security, which this broker does not have: ssl.keystore.location",
        "settings of Kafka that have no effect here: num.io.threads, group.coordinator.threads",
        "unknown settings, kept but without effect: nonsense",
    ]


def test_settings_with_their_default_are_not_named(caplog):
    assert warnings_of(caplog, num_io_threads="8", log_preallocate=" FALSE ", authorizer_class_name="") == []
