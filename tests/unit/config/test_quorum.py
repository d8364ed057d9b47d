"""The node's place in a cluster: roles, ids and quorums that one process can be, and those that it refuses."""

from __future__ import annotations

import pytest

from broker.config.node.quorum_checks import check_quorum
from broker.config.settings import BrokerConfig, ConfigError

SEVERAL = "1@a:9093,2@b:9093,3@c:9093"


def check(brokers: int = 1, **settings: str) -> None:
    check_quorum(BrokerConfig.load({key.replace("_", "."): value for key, value in settings.items()}), brokers)


@pytest.mark.parametrize(
    "settings",
    [
        {"controller_quorum_voters": SEVERAL},
        {"controller_quorum_bootstrap_servers": "a:9093,b:9093,c:9093"},
    ],
)
def test_quorum_of_several_names_the_option_that_makes_them(settings):
    with pytest.raises(ConfigError, match=r"names 3 nodes: .* Start one process with --brokers 3 in"):
        check(**settings)
    with pytest.raises(ConfigError, match="names 3 nodes"):
        check(2, **settings)
    check(3, **settings)


def test_quorum_of_this_node_is_obeyed():
    check(controller_quorum_voters="1@localhost:9093", process_roles="broker,controller")
    check(controller_quorum_voters="4@localhost:9093", node_id="4", process_roles="controller,broker")
    check(controller_quorum_voters="9@controller:9093", process_roles="broker")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"controller_quorum_voters": "x@h:1"}, "Failed to parse voter ID as an integer from x"),
        ({"controller_quorum_voters": "1@h"}, "Failed to parse host name from entry 1@h"),
        ({"controller_quorum_voters": "2@h:1", "process_roles": "broker,controller"}, "node id 1 must be included"),
        ({"controller_quorum_voters": "1@h:1", "process_roles": "broker"}, "node id 1 must not be included"),
        ({"process_roles": ""}, "must not be empty"),
        ({"process_roles": "controller"}, "would serve no clients"),
        (
            {"node_id": "1", "broker_id": "2"},
            "`node.id` and `broker.id` must be set to the same value. `broker.id` is dep",
        ),
    ],
)
def test_place_that_cannot_be_meant_is_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        check(**settings)


def test_older_name_of_the_id_may_stand_beside_the_new_one():
    check(node_id="3", broker_id=" 3 ")
    check(node_id="3", broker_id="-1")
