"""Where brokers listen, and which addresses they advertise."""

from __future__ import annotations

import pytest

from broker.cluster.listeners import make_nodes
from broker.config.settings import BrokerConfig, ConfigError


def listeners(
    listen: str | None, brokers: int = 1, **settings: str
) -> list[tuple[str, str, int, str | None, int | None]]:
    config = BrokerConfig.load({key.replace("_", "."): value for key, value in settings.items()})
    return [
        (each.name, each.host, each.port, each.advertised_host, each.advertised_port)
        for node in make_nodes(config, listen, brokers)
        for each in node.listeners.values()
    ]


def test_listen_keeps_the_advertised_address():
    assert listeners("0.0.0.0:7000", advertised_listeners="PLAINTEXT://outside:9000") == [
        ("PLAINTEXT", "0.0.0.0", 7000, "outside", 9000)
    ]
    assert listeners("0.0.0.0:7000") == [("PLAINTEXT", "0.0.0.0", 7000, None, None)]


def test_listen_takes_the_place_of_the_only_listener():
    assert listeners("0.0.0.0:7000", listeners="host://:9092", advertised_listeners="HOST://outside:9000") == [
        ("HOST", "0.0.0.0", 7000, "outside", 9000)
    ]


def test_listen_leaves_the_advertised_addresses_of_listeners_that_it_replaces():
    """The settings of a file stay as they are when the command line listens elsewhere."""
    both = {"listeners": "A://:1,PLAINTEXT://:2", "advertised_listeners": "A://a:3,PLAINTEXT://b:4"}
    assert listeners("0.0.0.0:7000", **both) == [("PLAINTEXT", "0.0.0.0", 7000, "b", 4)]
    assert [name for name, *_ in listeners(None, **both)] == ["A", "PLAINTEXT"]


def test_listen_of_several_brokers_advertises_a_port_for_each():
    advertised = {"advertised_listeners": "PLAINTEXT://outside:9000"}
    assert [each[2:] for each in listeners("h:7000", 2, **advertised)] == [
        (7000, "outside", 9000),
        (7001, "outside", 9001),
    ]
    assert [each[1:] for each in listeners("a:1,b:5", 2, **advertised)] == [
        ("a", 1, "outside", 9000),
        ("b", 5, "outside", 9001),
    ]


@pytest.mark.parametrize("listen", [None, "h:7000"])
def test_advertised_listener_that_does_not_exist_is_refused(listen):
    with pytest.raises(ConfigError, match="listeners has no listener of this name"):
        listeners(listen, advertised_listeners="OTHER://outside:9000")


@pytest.mark.parametrize(
    ("settings", "protocol"),
    [
        ({"listeners": "SSL://:9092"}, "SSL"),
        ({"listeners": "A://:9092"}, "PLAINTEXT"),
        ({"listeners": "A://:9092", "listener_security_protocol_map": "B:PLAINTEXT, a:sasl_ssl"}, "SASL_SSL"),
    ],
)
@pytest.mark.parametrize("listen", [None, "127.0.0.1:0"])
def test_map_gives_a_listener_its_protocol(settings, protocol, listen):
    config = BrokerConfig.load({key.replace("_", "."): value for key, value in settings.items()})
    made = make_nodes(config, listen, 1)[0].main
    assert (made.protocol, made.is_tls, made.is_sasl) == (protocol, protocol[-3:] == "SSL", protocol[:4] == "SASL")


@pytest.mark.parametrize("text", ["A:TLS", "PLAINTEXT", ":SSL"])
def test_map_that_is_wrong_is_refused(text):
    with pytest.raises(ConfigError):
        listeners(None, listeners="A://:9092", listener_security_protocol_map=text)


def test_listen_does_not_replace_a_listener_that_is_not_plaintext():
    with pytest.raises(ConfigError, match="would replace the listener B"):
        listeners("127.0.0.1:0", listeners="A://:1,B://:2", listener_security_protocol_map="B:SSL")
