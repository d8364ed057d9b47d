"""`kafka-configs --describe | --alter` of topics, brokers and groups; of users and clients: credentials and quotas."""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any

from broker.asks.ask import ANY, Node
from broker.config.key_effects import WITHOUT_EFFECT
from broker.config.settings import BROKER_KEYS
from momus.cli.kafka_tools import client_configs
from momus.cli.kafka_tools.client_configs import Entity
from momus.cli.kafka_tools.options import Options, bootstrap_options, one_action, say, use_settings
from momus.client.kafka_client import Client, RequestFailedError, configs
from momus.client.properties import parse_properties
from protocol.errors import ErrorCode

KINDS = {"topics": configs.TOPIC, "brokers": configs.BROKER, "groups": configs.GROUP}
OF_CLIENTS = ("users", "clients")
SHORT = {"topic": "topics", "broker": "brokers", "group": "groups", "user": "users", "client": "clients"}
SOURCES = {  # of a value, as Kafka's tool names them
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
DYNAMIC = {"topics": (1,), "brokers": (2,), "groups": (8,)}
DEFAULT_BROKER = 3


def run(tool: str, words: Sequence[str]) -> None:
    """Do what the words say. Errors: OSError; ends the tool."""
    options = Options(tool)
    bootstrap_options(options)
    options.text("--zookeeper", "--add-config", "--add-config-file", "--delete-config")
    options.flags("--describe", "--alter", "--all", "--entity-default", "--force")
    options.repeated("--entity-type", "--entity-name")
    options.text(*(f"--{name}" for name in SHORT))
    options.flags("--broker-defaults", "--user-defaults", "--client-defaults")
    given = options.read(words)
    action = one_action(options, given, "--describe", "--alter")
    entities = _entities(options, given)
    additions = _additions(options, given)
    removals = [key.strip() for key in (given.delete_config or "").split(",") if key.strip()]
    if action == "alter" and not additions and not removals:
        options.error(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    use_settings(options, [given.command_config])
    of_clients = [entity for entity in entities if entity.kind in OF_CLIENTS]
    with Client(given.bootstrap_server or _plaintext_listener(options, given)) as client:
        try:
            client.cluster()
            if action == "describe":
                if of_clients:
                    client_configs.describe(client, entities)
                else:
                    _describe(client, entities[0], all_of_them=given.all)
                return
            (entity, *_) = entities
            if entity.name is None:
                options.error("an entity name must be specified with --alter")
            if of_clients:
                client_configs.alter(options, client, entities, additions, removals)
            else:
                _alter(client, entity, additions, removals)
        except RequestFailedError as error:
            sys.exit(f"Error while executing config command: {error}")
    if idle := _without_effect(entity.kind, additions):
        say(f"{tool}: {', '.join(idle)}: kept, but without effect on a broker of momus", err=True)
    named = f"config for {entity.kind.removesuffix('s')} {entity.name}"
    say(f"Completed updating {named if entity.name else f'default config for {entity.kind} in the cluster'}.")


def _plaintext_listener(options: Options, given: Namespace) -> str:
    """Where --zookeeper was asked for, as start scripts of old images do: the first listener of this container whose
    protocol is PLAINTEXT, as 127.0.0.1:PORT. Errors: ends the tool."""
    if given.zookeeper is None:
        options.error("Either --bootstrap-server or --bootstrap-controller must be specified.")
    pairs = os.environ.get("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "").split(",")
    protocols = dict(pair.split(":") for pair in pairs if pair)
    controllers = os.environ.get("KAFKA_CONTROLLER_LISTENER_NAMES", "").split(",")
    for listener in os.environ.get("KAFKA_LISTENERS", "PLAINTEXT://:19092").split(","):
        name, _, address = listener.partition("://")
        if protocols.get(name, name) == "PLAINTEXT" and name not in controllers:
            return f"127.0.0.1:{address.rpartition(':')[2]}"
    return options.error("no listener in KAFKA_LISTENERS is PLAINTEXT: name one by --bootstrap-server")


def _entities(options: Options, given: Namespace) -> list[Entity]:
    """What is described or altered. Errors: ends the tool."""
    names = list(given.entity_name)
    found = []
    for kind in given.entity_type:
        if kind not in KINDS and kind not in OF_CLIENTS:
            options.error(f"--entity-type {kind} is not here: {', '.join((*KINDS, *OF_CLIENTS))}")
        found.append(Entity(kind, names.pop(0) if names else "" if given.entity_default else None))
    for word, kind in SHORT.items():
        if getattr(given, word) is not None:
            found.append(Entity(kind, getattr(given, word)))
        elif getattr(given, f"{word}_defaults", False):
            found.append(Entity(kind, ""))
    if not found:
        options.error("--entity-type must be specified")
    if len(found) > 1 and sorted(entity.kind for entity in found) != sorted(OF_CLIENTS):
        options.error("only users and clients may be specified together")
    return sorted(found, key=lambda entity: entity.kind != "users")


def _additions(options: Options, given: Namespace) -> dict[str, str]:
    """Settings of --add-config, k1=v1,k2=[v1,v2], and of a file. Errors: ends the tool."""
    found: dict[str, str] = {}
    if given.add_config_file:
        try:
            with open(given.add_config_file, encoding="utf-8") as file:
                found = parse_properties(file.read())
        except (OSError, ValueError) as error:
            options.error(f"{given.add_config_file}: {getattr(error, 'strerror', None) or error}")
    for word in re.findall(r"(?:\[[^\]]*\]|[^,\[])+", given.add_config or ""):
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            options.error('Invalid entity config: all configs to be added must be in the format "key=val".')
        found[key.strip()] = (
            value.strip().removeprefix("[").removesuffix("]") if value.startswith("[") else value.strip()
        )
    return found


def _described(client: Client, kind: str, name: str) -> Any:
    to = Node(int(name)) if kind == "brokers" and name.isdigit() and int(name) in client._nodes else ANY
    (result,) = client.ask(configs.describe(KINDS[kind], [name], to=to, with_synonyms=True))
    return result


def _describe(client: Client, entity: Entity, *, all_of_them: bool) -> None:
    for name in _names(client, entity) if entity.name is None else [entity.name]:
        result = _described(client, entity.kind, name)
        one = entity.kind.removesuffix("s")
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            say(f"The {one} '{name}' doesn't exist and doesn't have dynamic config.")  # exit code 0, as Kafka's
            continue
        if result.error_code:
            raise RequestFailedError(f"configs of {one} {name}", result.error_code, result.error_message)
        head = f"{'All' if all_of_them else 'Dynamic'} configs for {one} {name} are:"
        say(head if name else f"Default configs for {entity.kind} in the cluster are:")
        sources = DYNAMIC[entity.kind] if name else (DEFAULT_BROKER,)
        for row in sorted(result.configs, key=lambda row: str(row.name)):
            if all_of_them or row.config_source in sources:
                value = "null" if row.value is None else row.value
                synonyms = ", ".join(map(_synonym, row.synonyms))
                say(f"  {row.name}={value} sensitive={_word(row.is_sensitive)} synonyms={{{synonyms}}}")


def _word(value: bool) -> str:
    return "true" if value else "false"


def _synonym(row: Any) -> str:
    return f"{SOURCES.get(row.source, row.source)}:{row.name}={'null' if row.value is None else row.value}"


def _names(client: Client, entity: Entity) -> list[str]:
    """All of a kind."""
    if entity.kind == "topics":
        return [row["name"] for row in client.topics()]
    if entity.kind == "groups":
        return [row["group"] for row in client.groups()]
    return [*map(str, sorted(client._nodes)), ""]


def _without_effect(kind: str, keys: Iterable[str]) -> list[str]:
    """Settings of topics and brokers that momus keeps and does not obey."""
    of_brokers = kind == "brokers"
    return [
        key
        for key in keys
        if kind in ("topics", "brokers") and (key in WITHOUT_EFFECT or (of_brokers and key not in BROKER_KEYS))
    ]


def _alter(client: Client, entity: Entity, additions: dict[str, str], removals: Sequence[str]) -> None:
    """Errors: RequestFailedError."""
    changes = {entity.name or "": {**additions, **dict.fromkeys(removals)}}
    for row in client.ask(configs.alter(KINDS[entity.kind], changes)):
        if row.error_code:
            what = f"{entity.kind.removesuffix('s')} {entity.name}"
            raise RequestFailedError(what, row.error_code, row.error_message)
