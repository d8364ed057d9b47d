"""A setting whose name is wrong is told to who makes the broker or cluster, as a warning of Python's."""

from __future__ import annotations

import warnings

import pytest

from momus import Broker

TYPO = {"num.partition": 7, "num.partitions": 3}
SENTENCE = "num.partition is no setting of a broker, and has no effect. Did you mean num.partitions?"


def told(make) -> list[str]:
    """What is warned of while `make` makes something, which is closed."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        make().close()
    return [str(each.message) for each in found]


def names(broker: Broker) -> list[str]:
    """Of the clusters of its process."""
    return [each["name"] for each in broker.control.ask("GET", "/_admin/clusters")]


def test_process_and_its_clusters_warn_of_their_own_settings_alone(shared_broker):
    assert told(lambda: shared_broker.create_cluster(config=TYPO)) == [SENTENCE]
    assert told(lambda: shared_broker.create_cluster(config={"num.partitions": 3, "num.io.threads": 3})) == []
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        broker = Broker(config={**TYPO, "my.plugin.colour": "red"}).start()
    with broker:
        assert sorted(str(each.message) for each in found) == [
            "my.plugin.colour is no setting of a broker, and has no effect.",
            SENTENCE,
        ]
        assert told(broker.create_cluster) == []


def test_where_warnings_are_errors_nothing_is_left(shared_broker):
    before = names(shared_broker)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="is no setting of a broker"):
            shared_broker.create_cluster(config=TYPO)
        broker = Broker(config=TYPO)
        with pytest.raises(UserWarning, match="is no setting of a broker"):
            broker.start()
    assert not broker.running
    broker.close()
    assert names(shared_broker) == before
