"""The addresses that each virtual broker listens on and advertises: `listeners`, `advertised.listeners`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config.settings import ConfigError

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig

PLAINTEXT = "PLAINTEXT"
PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PROTOCOL_MAP = "listener.security.protocol.map"


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
        return self.protocol.endswith("SSL")

    @property
    def is_sasl(self) -> bool:
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

    listen   HOST:PORT, or one for each broker, separated by commas; None: the setting `listeners`. It makes one
             listener for each broker, with the name of the only one in `listeners`, or else PLAINTEXT, and with the
             address that `advertised.listeners` has for that name.
    Errors:  ConfigError.
    """
    advertised = _advertised(config)
    if listen is None:
        return [Node(config.node_id + i, _configured(config, advertised, i)) for i in range(brokers)]
    addresses = [_address("--listen", text) for text in listen.split(",")]
    if len(addresses) not in (1, brokers):
        raise ConfigError("--listen", listen, f"names {len(addresses)} addresses for {brokers} brokers")
    names = [_named("listeners", text)[0] for text in config.listeners]
    name = names[0] if len(names) == 1 else PLAINTEXT
    for replaced in names:
        if _protocol(config, replaced) != PLAINTEXT and replaced != name:
            raise ConfigError("--listen", listen, f"would replace the listener {replaced}, which is not PLAINTEXT")
    protocol = _protocol(config, name)
    nodes = []
    for i in range(brokers):
        host, port = addresses[i] if len(addresses) > 1 else (addresses[0][0], _shift(addresses[0][1], i))
        nodes.append(Node(config.node_id + i, [_listener(name, host, port, advertised, i, protocol)]))
    return nodes


def _advertised(config: BrokerConfig) -> dict[str, tuple[str, int]]:
    """The setting `advertised.listeners`: name -> host and port."""
    advertised = {}
    for text in config.advertised_listeners or ():
        name, host, port = _named("advertised.listeners", text)
        advertised[name] = (host, port)
    unknown = advertised.keys() - {_named("listeners", text)[0] for text in config.listeners}
    if unknown:
        raise ConfigError("advertised.listeners", ",".join(sorted(unknown)), "listeners has no listener of this name")
    return advertised


def _configured(config: BrokerConfig, advertised: dict[str, tuple[str, int]], i: int) -> list[Listener]:
    """The listeners in the setting, without those of controllers: they are no addresses for clients."""
    controllers = {name.upper() for name in config.controller_listener_names or ()}
    listeners = []
    for text in config.listeners:
        name, host, port = _named("listeners", text)
        if name in controllers:
            continue
        listeners.append(_listener(name, host or "0.0.0.0", _shift(port, i), advertised, i, _protocol(config, name)))
    if not listeners:
        raise ConfigError("listeners", ",".join(config.listeners), "has controllers' listeners only")
    return listeners


def _listener(
    name: str, host: str, port: int, advertised: dict[str, tuple[str, int]], i: int, protocol: str
) -> Listener:
    """The listener of the i-th broker, with its advertised address if it has one."""
    advertised_host, advertised_port = advertised.get(name, (None, 0))
    return Listener(name, host, port, advertised_host, _shift(advertised_port, i) or None, protocol)


def _protocol(config: BrokerConfig, name: str) -> str:
    """The security protocol of a listener, by `listener.security.protocol.map`, or else by its name.

    A name that says nothing is PLAINTEXT; Kafka would not start. Errors: ConfigError.
    """
    text = config.listener_security_protocol_map
    found = {}
    for pair in filter(None, text.replace(" ", "").split(",")):
        listener, colon, protocol = pair.rpartition(":")
        if not colon or not listener or protocol.upper() not in PROTOCOLS:
            raise ConfigError(PROTOCOL_MAP, text, f"{pair} is not NAME:PROTOCOL, with one of {', '.join(PROTOCOLS)}")
        found[listener.upper()] = protocol.upper()
    return found.get(name, name if name in PROTOCOLS else PLAINTEXT)


def _shift(port: int, i: int) -> int:
    return port + i if port else 0


def _named(key: str, text: str) -> tuple[str, str, int]:
    name, found, address = text.strip().partition("://")
    if not found:
        raise ConfigError(key, text, "is not NAME://HOST:PORT")
    return name.upper(), *_address(key, address)


def _address(key: str, text: str) -> tuple[str, int]:
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ConfigError(key, text, "is not HOST:PORT")
    return host.strip("[]"), int(port)
