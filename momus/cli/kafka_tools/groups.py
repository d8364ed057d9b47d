"""`kafka-consumer-groups --list | --describe | --reset-offsets | --delete | --delete-offsets`."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence

from broker.asks import groups as asks
from momus.cli.groups.client import INACTIVE, GroupClient
from momus.cli.groups.reset import Reset, ResetError, parse_datetime, parse_duration, parse_file, parse_scope
from momus.cli.kafka_tools.group_tables import Asked, describe
from momus.cli.kafka_tools.options import Options, bootstrap_options, one_action, say, use_settings
from momus.client.kafka_client import RequestFailedError, Row
from protocol.errors import ErrorCode

ACTIONS = ("--list", "--describe", "--delete", "--reset-offsets", "--delete-offsets")
WHERE = ("to-offset", "shift-by", "by-duration", "to-datetime", "from-file", "to-earliest", "to-latest", "to-current")
WORDS = {  # Kafka's names and words of errors, as its tool prints them
    "GROUP_ID_NOT_FOUND": "GroupIdNotFoundException: The group id does not exist.",
    "NON_EMPTY_GROUP": "GroupNotEmptyException: The group is not empty.",
    "GROUP_SUBSCRIBED_TO_TOPIC": "GroupSubscribedToTopicException: Deleting offsets of a topic is forbidden while the"
    " consumer group is actively subscribed to it.",
    "UNKNOWN_TOPIC_OR_PARTITION": "UnknownTopicOrPartitionException: This server does not host this topic-partition.",
}


def run(tool: str, words: Sequence[str]) -> None:
    """Do what the words say. Errors: OSError, ResetError; ends the tool."""
    options = Options(tool)
    bootstrap_options(options)
    options.flags(*ACTIONS, "--all-groups", "--all-topics", "--offsets", "--members", "--verbose")
    options.flags("--dry-run", "--execute", "--export", "--to-earliest", "--to-latest", "--to-current")
    options.text("--to-offset", "--shift-by", type=int)
    options.text("--by-duration", "--to-datetime", "--from-file", "--timeout")
    options.text("--state", "--type", nargs="?", const="")
    options.repeated("--group", "--topic")
    given = options.read(words)
    action = one_action(options, given, *ACTIONS)
    if given.bootstrap_server is None:
        options.error('Missing required argument "[bootstrap-server]"')
    if action != "list" and not given.group and not given.all_groups:
        options.error(f"Option [{action}] takes one of these options: [all-groups], [group]")
    use_settings(options, [given.command_config])
    timeout_s = float(given.timeout or 30_000) / 1000
    with GroupClient(given.bootstrap_server, timeout_s=timeout_s) as client:
        if action == "list":
            _list(client, given)
            return
        groups = [row["group"] for row in consumer_groups(client)] if given.all_groups else given.group
        if action == "describe":
            asked = Asked(given.state is not None, given.members, given.verbose)
            for group in groups:
                describe(client, group, asked)
        elif action == "delete":
            _delete(client, groups)
        elif action == "delete-offsets":
            if not given.topic:
                options.error("Option [delete-offsets] takes the following option: [topic]")
            for group in groups:
                _delete_offsets(client, group, given.topic)
        else:
            _reset(client, groups, given, _where(options, given, groups))


def consumer_groups(client: GroupClient) -> list[Row]:
    """Classic and consumer groups; share and streams groups have tools of their own."""
    rows = [row for row in client.groups() if (row["type"] or "classic").lower() in ("classic", "consumer")]
    return [row for row in rows if row["protocol_type"] in ("consumer", None)]


def _list(client: GroupClient, given: Namespace) -> None:
    rows = consumer_groups(client)
    columns = [name for name in ("type", "state") if getattr(given, name) is not None]
    for name in columns:
        wanted = [word.strip().lower() for word in getattr(given, name).split(",") if word.strip()]
        rows = [row for row in rows if not wanted or str(row[name] or "").lower() in wanted]
    if not columns:
        say(*(row["group"] for row in rows))
        return
    width = max([15, *(len(row["group"]) for row in rows)]) + 10
    table = [["GROUP", *map(str.upper, columns)]]
    table += [[row["group"], *(str(row[name] or "-").capitalize() for name in columns)] for row in rows]
    for values in table:
        say(f"{values[0]:{width}} " + " ".join(f"{value:20}" for value in values[1:]))


def _delete(client: GroupClient, groups: Sequence[str]) -> None:
    rows = client.delete_groups(groups)
    gone = ", ".join(f"'{row['name']}'" for row in rows if not row["error"])
    refused = [row for row in rows if row["error"]]
    if not refused:
        say(f"Deletion of requested consumer groups ({gone}) was successful.")
        return
    say("", "Error: Deletion of some consumer groups failed:")
    for row in refused:
        say(f"* Group '{row['name']}' could not be deleted due to: {said(row['error'])}")
    if gone:
        say("", f"These consumer groups were deleted successfully: {gone}")


def said(error: str) -> str:
    """An error as Kafka's tool names it."""
    return f"org.apache.kafka.common.errors.{WORDS[error]}" if error in WORDS else error


def _delete_offsets(client: GroupClient, group: str, topics: Sequence[str]) -> None:
    wanted = {
        topic: sorted(client.leaders(topic)) if some is None else some for topic, some in map(parse_scope, topics)
    }
    answer = client.ask(asks.delete_offsets(group, wanted))
    if answer.error_code:
        say("", f"Error: {said(ErrorCode(answer.error_code).name)}")
        return
    codes = [(each.name, row.partition_index, row.error_code) for each in answer.topics for row in each.partitions]
    if any(code for _, _, code in codes):
        say("", "Error: Encountered some partition-level error, see the follow-up details.")
    else:
        say(f"Request succeeded for deleting offsets from group {group}.")
    say("", f"{'TOPIC':15} {'PARTITION':10} {'STATUS':15}")
    for topic, partition, code in codes:
        status = f"Error: {said(ErrorCode(code).name)}" if code else "Successful"
        say(f"{topic:15} {partition!s:10} {status:15}")


def _where(options: Options, given: Namespace, groups: Sequence[str]) -> Reset:
    """The one reset that is asked for. Errors: ResetError; ends the tool."""
    values = {word: getattr(given, word.replace("-", "_")) for word in WHERE}
    chosen = {word: value for word, value in values.items() if value is not None and value is not False}
    if len(chosen) != 1:
        scenarios = ", ".join(f"[{word}]" for word in WHERE)
        options.error(f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]")
    if given.dry_run and given.execute:
        options.error("Option '[reset-offsets]' only accepts one of [dry-run], [execute]")
    if not given.topic and not given.all_topics and given.from_file is None:
        options.error("Option '[reset-offsets]' takes one of these options: [all-topics], [topic], [from-file]")
    ((word, value),) = chosen.items()
    if word == "from-file":
        try:
            with open(value, encoding="utf-8") as file:
                return Reset(
                    "file", offsets=parse_file(file.read().splitlines(), groups[0] if len(groups) == 1 else None)
                )
        except OSError as error:
            options.error(f"{value}: {error.strerror}")
    if word in ("by-duration", "to-datetime"):
        now_ms = time.time_ns() // 1_000_000
        return Reset("time", max(now_ms - parse_duration(value) if word == "by-duration" else parse_datetime(value), 0))
    if word in ("to-offset", "shift-by"):
        return Reset(word.removeprefix("to-").removesuffix("-by"), value)
    return Reset(word.removeprefix("to-"))


def _reset(client: GroupClient, groups: Sequence[str], given: Namespace, reset: Reset) -> None:
    """Print where each partition goes, and move it there where --execute says so."""
    if not given.execute and not given.dry_run:
        say("WARN: No action will be performed as the --execute option is missing.", err=True)
    scope = None if given.all_topics else [parse_scope(topic) for topic in given.topic]
    states = client.states()
    rows: list[Row] = []
    for group in groups:
        state = states.get(group)
        if state not in INACTIVE:
            why = f"is inactive, but the current state is {state}."
            say("", f"Error: Assignments can only be reset if the group '{group}' {why}")
            continue
        try:
            rows += client.plan(group, reset, scope, state)
        except RequestFailedError as error:
            say("", f"Error: Executing consumer group command failed due to {error}")
            return
    failed = []
    for group in groups if given.execute else []:
        refused = client.seek(group, [row for row in rows if row["group"] == group])
        failed += [f"{group} {row['topic']}-{row['partition']}: {row['error']}" for row in refused]
    if given.export:
        for row in rows:
            own = [row["group"]] if len(groups) != 1 else []
            say(",".join([*own, row["topic"], str(row["partition"]), str(row["offset"])]))
        say("")
    else:
        width = max([15, *(len(row["group"]) for row in rows)])
        topics = max([15, *(len(row["topic"]) for row in rows)])
        say("", f"{'GROUP':{width}} {'TOPIC':{topics}} {'PARTITION':10} NEW-OFFSET")
        for row in rows:
            say(f"{row['group']:{width}} {row['topic']:{topics}} {row['partition']!s:10} {row['offset']}")
    if failed:
        raise ResetError("; ".join(failed))
