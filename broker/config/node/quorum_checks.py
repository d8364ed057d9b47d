"""Refuses roles, quorums and listeners between brokers that cannot be meant: Kafka does not start, or waits for others.

Differs:  one process is broker and controller: several controllers are refused, since it would serve as a cluster of
          its own, and so is a process that is a controller alone. What Kafka needs for brokers and controllers to find
          each other may be missing.
Source:   Kafka's KafkaConfig.validateValues and QuorumConfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.config.config_values import StartRefusedError
from broker.config.node.listener_texts import NO_NAME, PLAINTEXT, PROTOCOL_MAP, protocols

if TYPE_CHECKING:
    from broker.config.node.listener_texts import Endpoint
    from broker.config.settings import BrokerConfig

ROLES: Final = "process.roles"
VOTERS: Final = "controller.quorum.voters"
BOOTSTRAP: Final = "controller.quorum.bootstrap.servers"
INTER_BROKER: Final = "inter.broker.listener.name"
INTER_PROTOCOL: Final = "security.inter.broker.protocol"
CONTROLLERS: Final = "controller.listener.names"


def check_quorum(config: BrokerConfig, brokers: int) -> None:
    """Check the node's place in its cluster. brokers: how many this process is. Errors: ConfigError."""
    given = config.props
    roles = _words(config, ROLES) if ROLES in given else None
    if roles == ():
        raise StartRefusedError(ROLES, f"Configuration '{ROLES}' must not be empty: broker, controller or both")
    if roles == ("controller",):
        raise StartRefusedError(
            ROLES,
            f"{ROLES}=controller would serve no clients: this process is broker and controller, remove the setting",
        )
    if config.node_id < 0 or _differ(given.get("node.id", ""), given.get("broker.id", "")):
        raise StartRefusedError(
            "node.id",
            "`node.id` and `broker.id` must be set to the same value."
            " `broker.id` is deprecated, please use `node.id` instead.",
        )
    ids = {_voter(text) for text in _words(config, VOTERS)}
    for key, several in ((VOTERS, len(ids)), (BOOTSTRAP, len(_words(config, BOOTSTRAP)))):
        if several > max(brokers, 1):
            raise StartRefusedError(
                key,
                f"{key} names {several} nodes: this process would serve alone, as a cluster of its own. Start one"
                f" process with --brokers {several} in the place of {several} nodes",
            )
    if ids and roles is not None and ("controller" in roles) != (config.node_id in ids):
        shown = f"the set of voters {VOTERS}=Set({', '.join(map(str, sorted(ids)))})"
        what = f"the node id {config.node_id} must"
        raise StartRefusedError(
            VOTERS,
            f"If {ROLES} contains the 'controller' role, {what} be included in {shown}"
            if "controller" in roles
            else f"If {ROLES} contains just the 'broker' role, {what} not be included in {shown}",
        )


def check_inter_broker(config: BrokerConfig, listeners: list[Endpoint], advertised: list[str]) -> None:
    """Check the listeners that brokers and controllers are told to use. advertised: names. Errors: ConfigError."""
    given = config.props
    controllers = [name.upper() for name in config.controller_listener_names or ()]
    roles = _words(config, ROLES)
    names = [each.name for each in listeners]
    is_controller = {ROLES, CONTROLLERS, "listeners"} <= given.keys() and "controller" in roles
    if is_controller and not set(controllers) <= set(names):
        what = "only contain values" if set(controllers) & set(names) else "contain at least one value"
        raise StartRefusedError(
            CONTROLLERS,
            f"{CONTROLLERS} must {what} appearing in the 'listeners' configuration when running the KRaft controller"
            " role",
        )
    if INTER_BROKER in given and INTER_PROTOCOL in given:
        raise StartRefusedError(INTER_BROKER, f"Only one of {INTER_BROKER} and {INTER_PROTOCOL} should be set.")
    key = INTER_BROKER if INTER_BROKER in given else INTER_PROTOCOL
    name = given.get(key, PLAINTEXT).strip().upper()
    if key not in given and name not in controllers:
        return
    options = [each for each in advertised or names if each not in controllers]
    if not name:
        raise StartRefusedError(key, f"{NO_NAME}: {key}")
    if key == INTER_BROKER and name not in protocols(config):
        raise StartRefusedError(key, f"Listener with name {name} defined in {key} not found in {PROTOCOL_MAP}.")
    if options and name not in options:
        raise StartRefusedError(
            key,
            f"{INTER_BROKER} must be a listener name defined in advertised.listeners. The valid options based on"
            f" currently configured listeners are {','.join(options)} ({key}={name})",
        )


def _words(config: BrokerConfig, key: str) -> tuple[str, ...]:
    value = config.value(key)
    assert isinstance(value, tuple)
    return value


def _differ(node_id: str, broker_id: str) -> bool:
    node_id, broker_id = node_id.strip(), broker_id.strip()
    return bool(node_id) and broker_id not in ("", "-1") and int(node_id) != int(broker_id)


def _voter(text: str) -> int:
    """The id in ID@HOST:PORT. Errors: ConfigError."""
    number, _, address = text.partition("@")
    host, colon, port = address.rpartition(":")
    if not (number.isascii() and number.isdigit()):
        raise StartRefusedError(VOTERS, f"Failed to parse voter ID as an integer from {number}")
    if not host or not colon or not (port.isascii() and port.isdigit()):
        raise StartRefusedError(
            VOTERS,
            f"Failed to parse host name from entry {text} for the configuration {VOTERS}. Each entry should be in the"
            " form `{id}@{host}:{port}`.",
        )
    return int(number)
