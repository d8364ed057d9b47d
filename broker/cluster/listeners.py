"""The addresses that each virtual broker listens on and advertises: `listeners`, `advertised.listeners`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config.config_values import StartRefusedError
from broker.config.node.listener_texts import (
    MOST_PORT,
    PLAINTEXT,
    PROTOCOLS,
    Endpoint,
    advertised_of,
    listeners_of,
    protocols,
)
from broker.config.node.quorum_checks import check_inter_broker
from broker.config.settings import ConfigError

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig

LISTEN = "--listen"


class Listener:
    """An address that clients connect to, and the one that is advertised to them."""

    __slots__ = ("advertised_host", "advertised_port", "host", "name", "port", "protocol")

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        advertised_host: str | None = None,
        advertised_port: int | None = None,
        protocol: str = PLAINTEXT,
    ) -> None:
        self.name = name
        self.protocol = protocol  # one of PROTOCOLS
        self.host = host
        self.port = port  # 0 until the system has chosen one
        self.advertised_host = advertised_host  # None: the address the client used
        self.advertised_port = advertised_port

    @property
    def is_tls(self) -> bool:
        """Whether its protocol is SSL or SASL_SSL."""
        return self.protocol.endswith("SSL")

    @property
    def is_sasl(self) -> bool:
        """Whether its clients authenticate by SASL."""
        return self.protocol.startswith("SASL")


class Node:
    """A virtual broker: a node id and its listeners."""

    __slots__ = ("listeners", "node_id")

    def __init__(self, node_id: int, listeners: list[Listener]) -> None:
        self.node_id = node_id
        self.listeners = {listener.name: listener for listener in listeners}

    @property
    def main(self) -> Listener:
        """The listener named first."""
        return next(iter(self.listeners.values()))


def make_nodes(config: BrokerConfig, listen: str | None, brokers: int) -> list[Node]:
    """The virtual brokers: ids count up from node.id, and so do ports that are not 0, unless each has its own.

    listen   [NAME://]HOST:PORT, or one for each broker, separated by commas; None: the setting `listeners`. It makes
             one listener for each broker, with the name given, or that of the only one in `listeners`, or else
             PLAINTEXT, and with the address that `advertised.listeners` has for that name.
    Errors:  ConfigError.
    """
    endpoints = listeners_of(config)
    advertised = advertised_of(config, endpoints)
    check_inter_broker(config, endpoints, list(advertised))
    if listen is not None:
        nodes = _listening(config, listen, brokers, endpoints, advertised)
    else:
        nodes = [Node(config.node_id + i, _configured(config, endpoints, advertised, i)) for i in range(brokers)]
    _check_ports(nodes)
    return nodes


def _listening(
    config: BrokerConfig, listen: str, brokers: int, endpoints: list[Endpoint], advertised: dict[str, tuple[str, int]]
) -> list[Node]:
    """The brokers that `--listen` makes."""
    addresses = [split_listen(text) for text in listen.split(",")]
    given = {name for name, _, _ in addresses if name}
    endpoints = _of_clients(config, endpoints)
    if len(addresses) not in (1, brokers) or len(given) > 1:
        reason = f"names {len(addresses)} addresses for {brokers} brokers"
        raise ConfigError(LISTEN, listen, f"{reason}: several listeners of one are the setting listeners")
    name = given.pop() if given else endpoints[0].name if len(endpoints) == 1 else PLAINTEXT
    for each in endpoints:
        if each.protocol != PLAINTEXT and each.name != name:
            raise ConfigError(LISTEN, listen, f"would replace the listener {each.name}, which is not PLAINTEXT")
    protocol = protocols(config).get(name, name if name in PROTOCOLS else "")
    if not protocol:
        raise ConfigError(LISTEN, listen, f"No security protocol defined for listener {name}")
    nodes = []
    for i in range(brokers):
        _, host, port = addresses[i] if len(addresses) > 1 else addresses[0]
        port = port if len(addresses) > 1 else _shift(port, i)
        nodes.append(Node(config.node_id + i, [_listener(name, host, port, advertised, i, protocol)]))
    return nodes


def _configured(
    config: BrokerConfig, endpoints: list[Endpoint], advertised: dict[str, tuple[str, int]], i: int
) -> list[Listener]:
    """The listeners in the setting, without those of controllers."""
    listeners = [
        _listener(each.name, each.host or "0.0.0.0", _shift(each.port, i), advertised, i, each.protocol)
        for each in _of_clients(config, endpoints)
    ]
    if not listeners:
        raise StartRefusedError(
            "listeners",
            "There must be at least one broker advertised listener. Perhaps all listeners appear in"
            " controller.listener.names?",
        )
    return listeners


def _of_clients(config: BrokerConfig, endpoints: list[Endpoint]) -> list[Endpoint]:
    """Those that are not of controllers: these are no addresses for clients."""
    controllers = {name.upper() for name in config.controller_listener_names or ()}
    return [each for each in endpoints if each.name not in controllers]


def _listener(
    name: str, host: str, port: int, advertised: dict[str, tuple[str, int]], i: int, protocol: str
) -> Listener:
    """The listener of the i-th broker, with its advertised address if it has one."""
    advertised_host, advertised_port = advertised.get(name, (None, 0))
    return Listener(name, host, port, advertised_host, _shift(advertised_port, i) or None, protocol)


def _check_ports(nodes: list[Node]) -> None:
    """Refuse a port that the listeners of two brokers would have. Errors: ConfigError."""
    taken: dict[tuple[str, int], Node] = {}
    for node in nodes:
        for listener in node.listeners.values():
            if listener.port > MOST_PORT:
                raise ConfigError(
                    "listeners", listener.port, f"is the port of broker {node.node_id}: at most {MOST_PORT}"
                )
            other = taken.setdefault((listener.host, listener.port), node)
            if listener.port and other is not node:
                raise ConfigError(
                    "listeners",
                    listener.port,
                    f"brokers {other.node_id} and {node.node_id} would both listen on it, since ports count up by one"
                    " for each broker: choose ports that are farther apart",
                )


def _shift(port: int, i: int) -> int:
    return port + i if port else 0


def split_listen(text: str) -> tuple[str, str, int]:
    """A part of `--listen`, [NAME://]HOST:PORT: name in capitals or "", host without brackets, port.

    Errors: ConfigError.
    """
    name, _, address = text.strip().rpartition("://")
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > MOST_PORT:
        raise ConfigError(LISTEN, text, "is not HOST:PORT")
    return name.upper(), host.removeprefix("[").removesuffix("]"), int(port)
