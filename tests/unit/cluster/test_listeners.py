"""Where brokers listen, and which addresses they advertise."""

from __future__ import annotations

import pytest

from broker.cluster.listeners import make_nodes
from broker.config.settings import BrokerConfig, ConfigError

MAP = "listener_security_protocol_map"


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig.load({key.replace("_", "."): value for key, value in settings.items()})


def listeners(
    listen: str | None, brokers: int = 1, **settings: str
) -> list[tuple[str, str, int, str | None, int | None]]:
    return [
        (each.name, each.host, each.port, each.advertised_host, each.advertised_port)
        for node in make_nodes(config(**settings), listen, brokers)
        for each in node.listeners.values()
    ]


def test_listen_keeps_the_advertised_address():
    assert listeners("0.0.0.0:7000", advertised_listeners="PLAINTEXT://outside:9000") == [
        ("PLAINTEXT", "0.0.0.0", 7000, "outside", 9000)
    ]
    assert listeners("0.0.0.0:7000") == [("PLAINTEXT", "0.0.0.0", 7000, None, None)]


def test_listen_takes_the_place_of_the_only_listener():
    given = {"listeners": "host://:9092", "advertised_listeners": "HOST://outside:9000", MAP: "HOST:PLAINTEXT"}
    assert listeners("0.0.0.0:7000", **given) == [("HOST", "0.0.0.0", 7000, "outside", 9000)]


def test_listen_takes_the_place_of_the_only_listener_of_clients():
    given = {"listeners": "HOST://:9092,C://:9093", "controller_listener_names": "C", MAP: "HOST:SSL,C:PLAINTEXT"}
    made = make_nodes(config(**given), "127.0.0.1:0", 1)[0].main
    assert (made.name, made.protocol) == ("HOST", "SSL")


def test_listen_may_name_its_listener():
    assert listeners("PLAINTEXT://127.0.0.1:7000,plaintext://[::1]:7001", 2) == [
        ("PLAINTEXT", "127.0.0.1", 7000, None, None),
        ("PLAINTEXT", "::1", 7001, None, None),
    ]
    named = make_nodes(config(**{MAP: "INSIDE:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT"}), "INSIDE://127.0.0.1:0", 1)[0].main
    assert (named.name, named.protocol) == ("INSIDE", "SASL_PLAINTEXT")


def test_listen_of_a_name_without_a_protocol_is_refused():
    with pytest.raises(ConfigError, match=r"No security protocol defined for listener PLAINTEX$"):
        listeners("PLAINTEX://127.0.0.1:7000")


def test_listen_of_two_names_says_where_listeners_are_set():
    with pytest.raises(ConfigError, match="several listeners of one are the setting listeners"):
        listeners("PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:2", 2)


def test_listen_leaves_the_advertised_addresses_of_listeners_that_it_replaces():
    """The settings of a file stay as they are when the command line listens elsewhere."""
    both = {"listeners": "A://:1,PLAINTEXT://:2", "advertised_listeners": "A://a:3,PLAINTEXT://b:4"}
    both[MAP] = "A:PLAINTEXT,PLAINTEXT:PLAINTEXT"
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
    with pytest.raises(ConfigError, match="No security protocol defined for listener OTHER"):
        listeners(listen, advertised_listeners="OTHER://outside:9000")
    with pytest.raises(
        ConfigError, match=r"subset of the ones defined in listeners\. Found SSL\. The valid .* PLAINTEXT$"
    ):
        listeners(listen, advertised_listeners="SSL://outside:9000")


@pytest.mark.parametrize(
    ("settings", "protocol"),
    [
        ({"listeners": "SSL://:9092"}, "SSL"),
        ({"listeners": "A://:9092", MAP: "B:PLAINTEXT, a:sasl_ssl"}, "SASL_SSL"),
    ],
)
@pytest.mark.parametrize("listen", [None, "127.0.0.1:0"])
def test_map_gives_a_listener_its_protocol(settings, protocol, listen):
    made = make_nodes(config(**settings), listen, 1)[0].main
    assert (made.protocol, made.is_tls, made.is_sasl) == (protocol, protocol[-3:] == "SSL", protocol[:4] == "SASL")


@pytest.mark.parametrize("text", ["A:TLS", "PLAINTEXT", ":SSL"])
def test_map_that_is_wrong_is_refused(text):
    with pytest.raises(ConfigError):
        listeners(None, listeners="A://:9092", **{MAP: text})


def test_listen_does_not_replace_a_listener_that_is_not_plaintext():
    with pytest.raises(ConfigError, match="would replace the listener B"):
        listeners("127.0.0.1:0", listeners="A://:1,B://:2", **{MAP: "A:PLAINTEXT,B:SSL"})


@pytest.mark.parametrize("listen", [None, "127.0.0.1:0"])
def test_listener_that_the_map_does_not_have_is_never_served_in_plain_text(listen):
    with pytest.raises(
        ConfigError, match=r"No security protocol defined for listener CLIENTS: .* Did you mean CLIENT\?"
    ):
        listeners(listen, listeners="CLIENTS://:9092", **{MAP: "CLIENT:SASL_SSL"})


@pytest.mark.parametrize("listen", [None, "127.0.0.1:0"])
def test_two_listeners_of_one_name_are_refused(listen):
    with pytest.raises(ConfigError, match="Each listener must have a different name"):
        listeners(listen, listeners="PLAINTEXT://:1,PLAINTEXT://:2")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ("PLAINTEXT://127.0.0.1:1,SSL://127.0.0.2:1", "one needs to be IPv4 and the other IPv6"),
        ("PLAINTEXT://h:1,SSL://127.0.0.1:1", "must have a different port"),
        ("PLAINTEXT://127.0.0.1:1,SSL://[::1]:1,SASL_SSL://[::2]:1", "must have a different port"),
    ],
)
def test_two_listeners_of_one_port_are_refused(texts, words):
    with pytest.raises(ConfigError, match=words):
        listeners(None, listeners=texts)


def test_two_listeners_of_one_port_may_be_of_ipv4_and_ipv6():
    found = listeners(None, listeners="PLAINTEXT://127.0.0.1:1,SSL://[::1]:1")
    assert [each[1:3] for each in found] == [("127.0.0.1", 1), ("::1", 1)]
    assert len(listeners(None, listeners="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0")) == 2


def test_port_that_two_brokers_would_have_is_refused():
    with pytest.raises(ConfigError, match="brokers 1 and 2 would both listen on it"):
        listeners(None, 2, listeners="PLAINTEXT://:9092,SSL://:9093")
    assert len(listeners(None, 2, listeners="PLAINTEXT://:9092,SSL://:9192")) == 4


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_address_of_every_machine_is_not_advertised(host):
    with pytest.raises(ConfigError, match="cannot use the nonroutable meta-address"):
        listeners(None, advertised_listeners=f"PLAINTEXT://{host}:9092")


@pytest.mark.parametrize("text", ["127.0.0.1:1", "PLAINTEXT://h", "PLAINTEXT://a b:1", "PLAINTEXT://h:x"])
def test_listener_that_is_no_address_is_refused(text):
    with pytest.raises(ConfigError, match=f"Unable to parse {text} to a broker endpoint"):
        listeners(None, listeners=text)


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_listener_with_a_port_that_is_none_is_refused(port):
    with pytest.raises(ConfigError, match="must be between 0 and 65535"):
        listeners(None, listeners=f"PLAINTEXT://h:{port}")


def test_map_that_gives_two_protocols_is_refused():
    with pytest.raises(ConfigError, match="gives A two protocols, SSL and PLAINTEXT"):
        listeners(None, listeners="A://:1", **{MAP: "A:SSL,A:PLAINTEXT"})
    assert len(listeners(None, listeners="A://:1", **{MAP: "A:SSL,a:ssl"})) == 1


def test_controllers_need_a_protocol_only_where_a_map_is_set_or_a_listener_is_secure():
    given = {"listeners": "PLAINTEXT://:1,C://:2", "controller_listener_names": "C"}
    assert [each[0] for each in listeners(None, **given)] == ["PLAINTEXT"]
    with pytest.raises(ConfigError, match="No security protocol defined for listener C"):
        listeners(None, **given, **{MAP: "PLAINTEXT:PLAINTEXT"})
    with pytest.raises(ConfigError, match="No security protocol defined for listener C"):
        listeners(None, **{**given, "listeners": "SSL://:1,C://:2"})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"inter_broker_listener_name": "SSL"}, "must be a listener name defined in advertised.listeners"),
        (
            {"inter_broker_listener_name": "X"},
            "Listener with name X defined in inter.broker.listener.name not found in",
        ),
        ({"inter_broker_listener_name": ""}, "The provided listener name is null or empty string"),
        ({"listeners": "://127.0.0.1:1"}, "The provided listener name is null or empty string"),
        ({"controller_listener_names": "PLAINTEXT", "listeners": "PLAINTEXT://:1,SSL://:2"}, "options .* are SSL"),
        ({"security_inter_broker_protocol": "SSL"}, r"The valid options .* are PLAINTEXT"),
        (
            {"security_inter_broker_protocol": "PLAINTEXT", "inter_broker_listener_name": "PLAINTEXT"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set",
        ),
        (
            {
                "process_roles": "broker,controller",
                "controller_listener_names": "C",
                "listeners": "PLAINTEXT://:1",
            },
            "controller.listener.names must contain at least one value appearing in the 'listeners'",
        ),
    ],
)
def test_listener_between_nodes_that_is_none_is_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        listeners(None, **settings)
