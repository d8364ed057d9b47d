"""A setting whose name is wrong is an error where it was written for this broker alone."""

from __future__ import annotations

import pytest
from momus_command import run_momus

from momus import Broker, BrokerError
from momus.control import ControlError

TYPO = {"num.partitons": 7, "num.partitions": 3}
SENTENCE = r"num\.partitons is no setting of a broker\. Did you mean num\.partitions\?"


def names(broker: Broker) -> list[str]:
    """Of the clusters of its process."""
    return [each["name"] for each in broker.control.ask("GET", "/_admin/clusters")]


def test_cluster_with_an_unknown_setting_is_not_made(shared_broker):
    before = names(shared_broker)
    with pytest.raises(ControlError, match=SENTENCE):
        shared_broker.create_cluster(config=TYPO)
    assert names(shared_broker) == before


def test_broker_with_an_unknown_setting_does_not_start():
    broker = Broker(config={**TYPO, "my.plugin.colour": "red"})
    with pytest.raises(BrokerError, match=rf"{SENTENCE} my\.plugin\.colour is no setting of a broker"):
        broker.start()
    assert not broker.running
    broker.close()


def test_settings_of_kafka_without_effect_are_no_error(shared_broker):
    with shared_broker.create_cluster(config={"num.partitions": 3, "num.io.threads": 3}):
        pass


def test_unknown_setting_that_is_typed_is_an_error(tmp_path):
    done = run_momus("serve", "--listen", "127.0.0.1:0", "-d", str(tmp_path), "--set", "num.partitons=3")
    assert done.returncode == 2
    assert "num.partitons is no setting of a broker. Did you mean num.partitions?" in done.stderr
