"""`kafka-topics --list | --create | --alter | --describe | --delete`."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Sequence

from momus.cli.kafka_tools.options import Options, bootstrap_options, one_action, say, use_settings
from momus.client.kafka_client import Client, RequestFailedError, Row
from momus.client.properties import parse_assignments

ACTIONS = ("--list", "--describe", "--create", "--alter", "--delete")


class _RefusedError(Exception):
    """What Kafka's tool prints on standard output, before exit code 1."""


def run(tool: str, words: Sequence[str]) -> None:
    """Do what the words say. Errors: OSError; ends the tool."""
    options = Options(tool)
    bootstrap_options(options)
    options.flags(*ACTIONS, "--if-exists", "--if-not-exists", "--exclude-internal", "--force")
    options.flags("--under-replicated-partitions", "--unavailable-partitions", "--topics-with-overrides")
    options.text("--topic", "--topic-id")
    options.text("--partitions", "--replication-factor", type=int)
    options.repeated("--config")
    given = options.read(words)
    if given.bootstrap_server is None:
        options.error("--bootstrap-server must be specified")
    action = one_action(options, given, *ACTIONS)
    if given.topic is None and action in ("create", "alter", "delete"):
        options.error('Missing required argument "[topic]"')
    if action == "alter" and given.partitions is None:
        options.error('Missing required argument "[partitions]"')
    if given.config and action != "create":
        options.error("--config goes with --create; kafka-configs changes the settings of a topic that is there")
    use_settings(options, [given.command_config])
    try:
        configs = parse_assignments(given.config)
    except ValueError as error:
        options.error(str(error))
    try:
        with Client(given.bootstrap_server) as client:
            _act(client, action, given, configs)
    except (_RefusedError, RequestFailedError) as error:
        say(f"Error while executing topic command : {error}")
        sys.exit(1)


def _act(client: Client, action: str, given: Namespace, configs: dict[str, str]) -> None:
    known = client.topics()
    if action == "create":
        if given.if_not_exists and any(row["name"] == given.topic for row in known):
            return
        rows = client.create_topics({given.topic: given.partitions or -1}, given.replication_factor or -1, configs)
        _check(rows, f"Topic '{given.topic}' already exists.")
        say(f"Created topic {given.topic}.")
        return
    chosen = matching([row["name"] for row in known if not (given.exclude_internal and row["internal"])], given.topic)
    if action == "list":
        say(*chosen)
        return
    if given.topic_id is not None:
        chosen = [row["name"] for row in client.describe_topics(chosen) if row["topic_id"] == given.topic_id]
    if not chosen and (given.topic is not None or given.topic_id is not None):
        if given.if_exists:
            return
        asked = f"Topic '{given.topic}'" if given.topic_id is None else f"TopicId '{given.topic_id}'"
        raise _RefusedError(f"{asked} does not exist as expected")
    if action == "delete":
        _check(client.delete_topics(chosen))
    elif action == "alter":
        partitions = next(row["partitions"] for row in known if row["name"] == chosen[0])
        _check(
            client.grow(chosen, given.partitions, dry_run=False),
            f"Topic already has {partitions} partition(s)." if given.partitions == partitions else None,
        )
    else:
        _describe(client.describe_topics(chosen), given)


def matching(names: Sequence[str], pattern: str | None) -> list[str]:
    """The names that a pattern of Kafka's means: the name itself, or a regular expression, in which a comma is `|`.

    Errors: OSError: it is no regular expression.
    """
    if pattern is None:
        return sorted(names)
    if pattern in names:
        return [pattern]
    try:
        expression = re.compile(pattern.replace(",", "|").replace(" ", ""))
    except re.error as error:
        raise OSError(f"{pattern!r} is no regular expression: {error}") from None
    return sorted(name for name in names if expression.fullmatch(name))


def _check(rows: Sequence[Row], already: str | None = None) -> None:
    """Raise what was refused; `already`: Kafka's words for what is so already."""
    for row in rows:
        if row["error"]:
            is_already = row["error"] in ("TOPIC_ALREADY_EXISTS", "INVALID_PARTITIONS")
            raise _RefusedError(already if already and is_already else row.get("message") or row["error"])


def _describe(rows: Sequence[Row], given: Namespace) -> None:
    """As Kafka's tool writes topics and their partitions, or only the partitions or topics that are asked for."""
    for row in rows:
        parts = row["partitions"]
        if given.under_replicated_partitions:
            parts = [each for each in parts if len(each["isr"]) < len(each["replicas"])]
        if given.unavailable_partitions:
            parts = [each for each in parts if each["leader"] < 0]
        only_parts = given.under_replicated_partitions or given.unavailable_partitions
        configs = ",".join(f"{key}={value}" for key, value in row["configs"].items())
        if not only_parts and (configs or not given.topics_with_overrides):
            copies = len(parts[0]["replicas"]) if parts else 0
            head = f"Topic: {row['name']}\tTopicId: {row['topic_id']}\tPartitionCount: {len(parts)}"
            say(f"{head}\tReplicationFactor: {copies}\tConfigs: {configs}")
        for each in [] if given.topics_with_overrides else parts:
            replicas, isr = (",".join(map(str, each[key])) for key in ("replicas", "isr"))
            leader = "none" if each["leader"] < 0 else each["leader"]
            head = f"\tTopic: {row['name']}\tPartition: {each['partition']}\tLeader: {leader}"
            say(f"{head}\tReplicas: {replicas}\tIsr: {isr}\tElr: \tLastKnownElr: ")
