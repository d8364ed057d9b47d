"""Settings as the suites of people who use Kafka's images already have them."""

from __future__ import annotations

import pytest
from core_broker import World

from broker.cluster.listeners import make_nodes
from broker.config.settings import BrokerConfig, ConfigError
from momus.client.properties import parse_environment

LISTENERS = "PLAINTEXT://0.0.0.0:9092,BROKER://0.0.0.0:9093,CONTROLLER://0.0.0.0:9094"


def test_listeners_of_controllers_are_not_opened():
    settings = {
        "listeners": LISTENERS,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    (node,) = make_nodes(BrokerConfig.load(settings), None, 1)
    assert [(each.name, each.port) for each in node.listeners.values()] == [("PLAINTEXT", 9092), ("BROKER", 9093)]
    with pytest.raises(ConfigError, match=r"Perhaps all listeners appear in controller\.listener\.names"):
        make_nodes(BrokerConfig.load({**settings, "listeners": "CONTROLLER://:9094"}), None, 1)


def test_variables_of_bitnamis_image_are_read_and_win():
    found = parse_environment(
        {
            "KAFKA_CFG_NUM_PARTITIONS": "7",
            "KAFKA_NUM_PARTITIONS": "3",
            "KAFKA_CFG_LISTENERS": "A://:1",
            "KAFKA_ENABLE_KRAFT": "yes",
            "KAFKA_CFG_MY__KEY": "v",
        }
    )
    assert found == {"num.partitions": "7", "listeners": "A://:1", "my_key": "v"}


@pytest.mark.parametrize("name", ["CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID"])
def test_id_of_the_cluster_may_be_told(name):
    assert parse_environment({name: "4L6g3nShT-eMCtK--X86sw"}) == {"cluster.id": "4L6g3nShT-eMCtK--X86sw"}
    assert parse_environment({name: ""}) == {}


def test_new_directory_gets_the_id_and_keeps_it():
    world = World("os", cluster_id="4L6g3nShT-eMCtK--X86sw")
    assert world.broker.cluster_id == "4L6g3nShT-eMCtK--X86sw"
    assert world.again(world.files.crash(), cluster_id="another").broker.cluster_id == "4L6g3nShT-eMCtK--X86sw"
