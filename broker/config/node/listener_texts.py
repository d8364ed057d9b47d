"""Reads `listeners`, `advertised.listeners` and `listener.security.protocol.map`, and refuses what Kafka refuses.

A listener without a protocol, two of one name or port: each would be served otherwise than its operator believes.
Differs:  `listeners` on every address need no `advertised.listeners`: clients are sent to the address that they used.
          A map that gives one name two protocols is refused; Kafka takes the last. `::` is no address to advertise, no
          more than 0.0.0.0.
Source:   Kafka's SocketServerConfigs.listenerListToEndPoints and AbstractKafkaConfig.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.config.config_values import ConfigError, StartRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.config.settings import BrokerConfig

PLAINTEXT: Final = "PLAINTEXT"
PROTOCOLS: Final = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LISTENERS: Final = "listeners"
ADVERTISED: Final = "advertised.listeners"
PROTOCOL_MAP: Final = "listener.security.protocol.map"
NO_ADDRESSES: Final = ("0.0.0.0", "::", "0:0:0:0:0:0:0:0")  # they stand for every address of a machine
_ENDPOINT: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)", re.ASCII)
_IPV4: Final = re.compile(r"\d+\.\d+\.\d+\.\d+", re.ASCII)
NO_NAME: Final = "The provided listener name is null or empty string"
MOST_PORT: Final = 65_535


class Endpoint(NamedTuple):
    """NAME://HOST:PORT with its security protocol; the name in capitals, the host without brackets, "" for any."""

    name: str
    host: str
    port: int
    protocol: str


def protocols(config: BrokerConfig) -> dict[str, str]:
    """The security protocol of each listener name. Errors: ConfigError.

    Where no map is set, the controllers' listeners are PLAINTEXT, unless some listener is not.
    """
    text = config.listener_security_protocol_map
    found: dict[str, str] = {}
    for pair in filter(None, re.split(r"\s*,\s*", text.strip())):
        listener, colon, protocol = pair.rpartition(":")
        name, protocol = listener.strip().upper(), protocol.strip().upper()
        if not colon or not name:
            raise ConfigError(PROTOCOL_MAP, text, f"{pair} is not NAME:PROTOCOL, with one of {', '.join(PROTOCOLS)}")
        if protocol not in PROTOCOLS:
            raise StartRefusedError(
                PROTOCOL_MAP,
                f"Invalid security protocol `{protocol}` defined in {PROTOCOL_MAP}: one of {', '.join(PROTOCOLS)}",
            )
        if found.setdefault(name, protocol) != protocol:
            raise ConfigError(PROTOCOL_MAP, text, f"gives {name} two protocols, {found[name]} and {protocol}")
    if PROTOCOL_MAP not in config.props:
        controllers = {name.upper() for name in config.controller_listener_names or ()}
        names = {text.partition("://")[0].strip().upper() for text in config.listeners}
        if not any(name in PROTOCOLS[1:] for name in controllers | names):
            found = {**dict.fromkeys(controllers, PLAINTEXT), **found}
    return found


def listeners_of(config: BrokerConfig) -> list[Endpoint]:
    """The setting `listeners`, with those of controllers. Errors: ConfigError."""
    try:
        found = _endpoints(config.listeners, protocols(config))
        _check_ports(config.listeners, found)
    except _WrongError as error:
        raise _creating(LISTENERS, config.listeners, error) from None
    return found


def advertised_of(config: BrokerConfig, listeners: Iterable[Endpoint]) -> dict[str, tuple[str, int]]:
    """The setting `advertised.listeners`: name -> host, "" for none, and port. Errors: ConfigError."""
    texts = config.advertised_listeners
    if texts is None:
        return {}
    if not texts:
        raise StartRefusedError(ADVERTISED, f"Configuration '{ADVERTISED}' must not be empty.")
    try:
        found = _endpoints(texts, protocols(config))
    except _WrongError as error:
        raise _creating(ADVERTISED, texts, error) from None
    names = [each.name for each in listeners]
    if not {each.name for each in found} <= set(names):
        raise StartRefusedError(
            ADVERTISED,
            f"{ADVERTISED} listener names must be equal to or a subset of the ones defined in listeners. Found"
            f" {','.join(each.name for each in found)}. The valid options based on the current configuration are"
            f" {','.join(names)}",
        )
    for each in found:
        if each.host in NO_ADDRESSES:
            raise StartRefusedError(
                ADVERTISED,
                f"{ADVERTISED} cannot use the nonroutable meta-address {each.host}. Use a routable IP address.",
            )
    return {each.name: (each.host, each.port) for each in found}


class _WrongError(ValueError):
    """What is wrong with a list of listeners, in Kafka's words."""


def _creating(key: str, texts: tuple[str, ...], error: _WrongError) -> StartRefusedError:
    return StartRefusedError(key, f"Error creating broker listeners from '{_shown(texts)}' ({key}): {error}")


def _shown(texts: tuple[str, ...]) -> str:
    return f"[{', '.join(texts)}]"


def _endpoints(texts: tuple[str, ...], protocol_of: Mapping[str, str]) -> list[Endpoint]:
    found = [_endpoint(text, protocol_of) for text in texts]
    if len({each.name for each in found}) < len(found):
        raise _WrongError(f"Each listener must have a different name, listeners: {_shown(texts)}")
    return found


def _endpoint(text: str, protocol_of: Mapping[str, str]) -> Endpoint:
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise _WrongError(f"Unable to parse {text} to a broker endpoint: it is NAME://HOST:PORT")
    name, host, port = match[1].upper(), match[2], int(match[3])
    if not name.strip():
        raise _WrongError(f"{NO_NAME}: {text}")
    if name not in protocol_of:
        question = ""
        if protocol_of:
            from broker.config.near_names import near  # 3 ms, and only at a refused start

            question = f": {PROTOCOL_MAP} has {', '.join(sorted(protocol_of))}.{near(name, protocol_of)}"
        raise _WrongError(f"No security protocol defined for listener {name}{question}")
    if not 0 <= port <= MOST_PORT:
        raise _WrongError(f"{text} has the port {port}: it must be between 0 and {MOST_PORT}")
    return Endpoint(name, host, port, protocol_of[name])


def _check_ports(texts: tuple[str, ...], found: list[Endpoint]) -> None:
    """Two listeners of one port: one of IPv4, one of IPv6, as Kafka allows, whatever their hosts are."""
    for port in {each.port for each in found if each.port}:
        hosts = [each.host for each in found if each.port == port]
        if len(hosts) == 1 or (len(hosts) == 2 and {_kind(host) for host in hosts} == {4, 6}):
            continue
        if len(hosts) == 2 and all(map(_kind, hosts)):
            raise _WrongError(
                "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, listeners:"
                f" {_shown(texts)}, port: {port}"
            )
        raise _WrongError(
            "Each listener must have a different port unless exactly one listener has an IPv4 address and the other"
            f" IPv6 address, listeners: {_shown(texts)}, port: {port}"
        )


def _kind(host: str) -> int:
    """4 or 6, of an address; 0: a name, or any address."""
    return 6 if ":" in host else 4 if _IPV4.fullmatch(host) else 0
