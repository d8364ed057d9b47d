"""`kafka-get-offsets`: the offsets of partitions, as `topic:partition:offset` lines."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import NamedTuple

from momus.cli.kafka_tools.options import Options, bootstrap_options, say, use_settings
from momus.cli.kafka_tools.topics import matching
from momus.cli.records.client import RecordClient

TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
PATTERN = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")


class _Part(NamedTuple):
    """Topics by a pattern (None: all), and their partitions from `low` up to before `high` (None: all the rest)."""

    topic: str | None
    low: int = 0
    high: int | None = None


def run(tool: str, words: Sequence[str]) -> None:
    """Do what the words say. Errors: OSError; ends the tool."""
    options = Options(tool)
    bootstrap_options(options)
    options.text("--broker-list", "--topic", "--partitions", "--topic-partitions")
    options.text("--time", default="latest")
    options.flags("--exclude-internal-topics")
    given = options.read(words)
    bootstrap = given.bootstrap_server or given.broker_list
    if bootstrap is None:
        options.error('Missing required argument "[bootstrap-server]"')
    if given.topic_partitions and (given.topic or given.partitions):
        options.error("--topic-partitions cannot be used with --topic or --partitions")
    at = TIMES.get(given.time, given.time)
    if not isinstance(at, int) and not re.fullmatch("-?[0-9]{1,18}", at):
        options.error(f"Malformed time argument {given.time}. {', '.join(TIMES)}, -1, -2 and so on, or a time in ms")
    use_settings(options, [given.command_config])
    parts = _parts(options, given)
    found = False
    with RecordClient(bootstrap) as client:
        topics = [row["name"] for row in client.topics() if not (given.exclude_internal_topics and row["internal"])]
        for topic in topics:
            ranges = [part for part in parts if topic in matching([topic], part.topic)]
            leaders = client.leaders(topic) if ranges else {}
            chosen = {
                each: leader
                for each, leader in leaders.items()
                if any(part.low <= each and (part.high is None or each < part.high) for part in ranges)
            }
            offsets = client.offsets_at(topic, chosen, int(at))
            for each in sorted(chosen, key=str):
                found = True
                if each not in offsets:
                    say(f"Skip getting offsets for topic-partition {topic}-{each}: it has no leader", err=True)
                elif offsets[each] >= 0:
                    say(f"{topic}:{each}:{offsets[each]}")
    if not found:
        sys.exit(f"{tool}: Error occurred: Could not match any topic-partitions with the specified filters")


def _parts(options: Options, given: Namespace) -> list[_Part]:
    """Which partitions of which topics. Errors: ends the tool."""
    if given.topic_partitions is None:
        numbers = (given.partitions or "").split(",") if given.partitions else []
        if not all(number.strip().isdigit() for number in numbers):
            options.error(f"--partitions expects a list of numbers: {given.partitions}")
        return [_Part(given.topic, int(each), int(each) + 1) for each in numbers] or [_Part(given.topic)]
    found = []
    for text in given.topic_partitions.split(","):
        match = PATTERN.fullmatch(text)
        if match is None:
            options.error(f"Invalid rule specification: {text}")
        topic, one, low, high = match.groups()
        if one:
            found.append(_Part(topic or None, int(one), int(one) + 1))
        else:
            found.append(_Part(topic or None, int(low or 0), int(high) if high else None))
    return found
