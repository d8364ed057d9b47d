"""`kafka-console-consumer`: prints records of topics, alone or as a member of a group."""

from __future__ import annotations

import struct
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import NamedTuple

from momus.cli.kafka_tools.member import Member, Positions
from momus.cli.kafka_tools.options import Options, assignments, bootstrap_options, say, use_settings
from momus.cli.kafka_tools.topics import matching
from momus.cli.records.client import LEADER_MOVES, RETRY_PAUSE_S, WAIT_MS, RecordClient, records_in
from momus.cli.records.text import In
from momus.client.connect_settings import SETTINGS
from momus.client.kafka_client import EARLIEST, LATEST, RequestFailedError
from momus.client.kafka_client import _check as check
from momus.client.properties import parse_properties
from protocol.errors import ErrorCode

FORMATTERS = ("org.apache.kafka.tools.consumer.DefaultMessageFormatter", "kafka.tools.DefaultMessageFormatter")
PROPERTIES = {
    "print.timestamp": "false",
    "print.partition": "false",
    "print.offset": "false",
    "print.headers": "false",
    "print.key": "false",
    "print.value": "true",
    "key.separator": "\t",
    "line.separator": "\n",
    "headers.separator": ",",
    "null.literal": "null",
    "key.deserializer": "",
    "value.deserializer": "",
}
NUMBERS = {"Short": ">h", "Integer": ">i", "Long": ">q", "Float": ">f", "Double": ">d"}
SERIALIZATION = "org.apache.kafka.common.serialization."


class Formatter(NamedTuple):
    """What is printed of a record."""

    properties: dict[str, str]
    key: Callable[[bytes], bytes]
    value: Callable[[bytes], bytes]

    def line(self, record: In, kind: str) -> bytes:
        """As Kafka's DefaultMessageFormatter. `kind`: CreateTime or LogAppendTime."""
        null = self.properties["null.literal"].encode()

        def on(part: str) -> bool:
            return self.properties[f"print.{part}"].strip().lower() == "true"

        parts = [f"{kind}:{record.timestamp_ms}".encode()] if on("timestamp") else []
        parts += [b"Partition:%d" % record.partition] if on("partition") else []
        parts += [b"Offset:%d" % record.offset] if on("offset") else []
        if on("headers"):
            pairs = [name.encode() + b":" + (null if value is None else value) for name, value in record.headers]
            parts.append(self.properties["headers.separator"].encode().join(pairs) or b"NO_HEADERS")
        if on("key"):
            parts.append(null if record.key is None else self.key(record.key))
        if on("value"):
            parts.append(null if record.value is None else self.value(record.value))
        return self.properties["key.separator"].encode().join(parts) + self.properties["line.separator"].encode()


def run(tool: str, words: Sequence[str]) -> None:
    """Print what is there and what comes. Errors: OSError; ends the tool."""
    options = Options(tool)
    bootstrap_options(options)
    options.text(
        "--topic", "--include", "--whitelist", "--offset", "--group", "--consumer.config", "--formatter-config"
    )
    options.text("--partition", "--max-messages", "--timeout-ms", type=int)
    options.text("--isolation-level", default="read_uncommitted")
    options.text("--formatter", default=FORMATTERS[0])
    options.text("--key-deserializer", "--value-deserializer")
    options.flags("--from-beginning", "--skip-message-on-error", "--enable-systest-events")
    options.repeated("--property", "--formatter-property", "--consumer-property", "--command-property")
    given = options.read(words)
    given.include = given.include or given.whitelist
    if given.bootstrap_server is None:
        options.error('Missing required argument "[bootstrap-server]"')
    if (given.topic is None) == (given.include is None):
        options.error("Exactly one of --include/--topic is required.")
    if given.partition is None and given.offset is not None:
        options.error("The partition is required when offset is specified.")
    if given.enable_systest_events:
        options.error("--enable-systest-events is not here")
    client_words = [*given.consumer_property, *given.command_property]
    settings = use_settings(options, [getattr(given, "consumer.config"), given.command_config], client_words)
    SETTINGS.setdefault("client.id", "console-consumer")
    given.group = given.group or settings.get("group.id")
    if given.group and given.partition is not None:
        options.error("Options group and partition cannot be specified together.")
    given.isolation_level = settings.get("isolation.level", given.isolation_level)
    if given.isolation_level not in ("read_committed", "read_uncommitted"):
        options.error("--isolation-level is read_committed or read_uncommitted")
    formatter = _formatter(options, given)
    with RecordClient(given.bootstrap_server) as client:
        reading = _Reading(client, given, settings)
        try:
            _print(reading, formatter, given)
        finally:
            sys.stdout.flush()
            say(f"Processed a total of {reading.count} messages", err=True)
            reading.close()


def _formatter(options: Options, given: Namespace) -> Formatter:
    """How records are printed. Errors: ends the tool."""
    if given.formatter not in FORMATTERS:
        options.error(f"--formatter {given.formatter} is not here: {FORMATTERS[0]} is")
    found: dict[str, str] = {}
    if given.formatter_config is not None:
        try:
            with open(given.formatter_config, encoding="utf-8") as file:
                found = parse_properties(file.read())
        except (OSError, ValueError) as error:
            options.error(f"{given.formatter_config}: {getattr(error, 'strerror', None) or error}")
    found.update(assignments(options, [*given.property, *given.formatter_property]))
    unknown = sorted(found.keys() - PROPERTIES.keys())
    if unknown:
        options.error(f"{unknown[0]} is no property of the formatter here: {', '.join(PROPERTIES)}")
    every = {**PROPERTIES, **found}
    sides = [
        _deserializer(options, getattr(given, f"{each}_deserializer") or every[f"{each}.deserializer"])
        for each in ("key", "value")
    ]
    return Formatter(every, sides[0], sides[1])


def _deserializer(options: Options, name: str) -> Callable[[bytes], bytes]:
    """Bytes as text: those of a string as they are. Errors: ends the tool."""
    kind = name.removeprefix(SERIALIZATION).removesuffix("Deserializer")
    if kind in ("", "String", "ByteArray"):
        return bytes
    if kind not in NUMBERS:
        options.error(f"{name} is not here: {', '.join(('String', *NUMBERS))}Deserializer of {SERIALIZATION[:-1]} are")
    form = struct.Struct(NUMBERS[kind])

    def number(data: bytes) -> bytes:
        if len(data) != form.size:
            raise OSError(f"Size of data received by {kind}Deserializer is not {form.size}")
        return str(form.unpack(data)[0]).encode()

    return number


def _print(reading: _Reading, formatter: Formatter, given: Namespace) -> None:
    """Print until enough has come, or nothing for too long, or the process is told to end."""
    last_news = time.monotonic()
    try:
        while given.max_messages is None or reading.count < given.max_messages:
            for record in reading.poll():
                last_news = time.monotonic()
                try:
                    line = formatter.line(record, reading.timestamp_kind(record.topic))
                except OSError:
                    if not given.skip_message_on_error:
                        raise
                    continue
                finally:
                    reading.done(record)
                sys.stdout.buffer.write(line)
                if given.max_messages is not None and reading.count >= given.max_messages:
                    break
            sys.stdout.buffer.flush()
            if given.timeout_ms is not None and time.monotonic() - last_news > given.timeout_ms / 1000:
                say(f"nothing came for {given.timeout_ms} ms", err=True)
                return
    except KeyboardInterrupt:
        return


class _Reading:
    """Where it reads: partitions with their positions, of a group or of topics whole."""

    def __init__(self, client: RecordClient, given: Namespace, settings: dict[str, str]) -> None:
        self.count = 0
        self._client = client
        self._given = given
        reset = "earliest" if given.from_beginning else settings.get("auto.offset.reset", "latest")
        self._reset = EARLIEST if reset == "earliest" else LATEST
        self._is_committed = given.isolation_level == "read_committed"
        self._leaders: dict[str, dict[int, int]] = {}
        self._kinds: dict[str, str] = {}
        self._member: Member | None = None
        self._positions: Positions | None = None  # of what is printed; None: to be found
        self._topics = self._wanted()
        if given.group:
            commits = settings.get("enable.auto.commit", "true").lower() == "true"
            instance = settings.get("group.instance.id")
            self._member = Member(given.bootstrap_server, given.group, self._topics, instance, commits=commits)

    def _wanted(self) -> list[str]:
        given = self._given
        if given.topic is not None:
            return [given.topic]
        return matching([row["name"] for row in self._client.topics() if not row["internal"]], given.include)

    def close(self) -> None:
        """Leave the group."""
        if self._member is not None:
            self._member.leave(self._positions or {})

    def done(self, record: In) -> None:
        """This record was printed."""
        self.count += 1
        if self._positions is not None:
            self._positions[record.topic, record.partition] = record.offset + 1

    def timestamp_kind(self, topic: str) -> str:
        """Of whom the topic's timestamps are."""
        if topic not in self._kinds:
            self._kinds[topic] = self._client.topic_configs(topic).get("message.timestamp.type") or "CreateTime"
        return self._kinds[topic]

    def poll(self) -> list[In]:
        """What has come. Waits for half a second at most where nothing has."""
        if self._positions is not None and self._member is not None and not self._member.beat(self._positions):
            self._positions = None
        if self._positions is None:
            try:
                self._positions = self._begin()
            except RequestFailedError as error:
                if error.code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, *LEADER_MOVES):
                    raise
                time.sleep(RETRY_PAUSE_S)  # it may be made
                return []
        if not self._positions:
            time.sleep(RETRY_PAUSE_S)
            return []
        return self._fetched(self._positions)

    def _begin(self) -> Positions:
        """The first positions of all partitions that are to be read."""
        given = self._given
        for topic in self._topics:
            self._leaders[topic] = self._client.leaders_made(topic, create=True)
        if self._member is not None:
            assigned = self._member.join(self._client)
            stored = {
                (row["topic"], row["partition"]): row["offset"] for row in self._client.committed_offsets(given.group)
            }
            positions = {place: stored[place] for place in assigned if stored.get(place, -1) >= 0}
            return positions | self._at([place for place in assigned if place not in positions], self._reset)
        places = [(topic, partition) for topic in self._topics for partition in self._leaders[topic]]
        if given.partition is not None:
            places = [place for place in places if place[1] == given.partition]
            if not places:
                raise OSError(f"topic {given.topic} has no partition {given.partition}")
        word = given.offset or ("earliest" if self._reset == EARLIEST else "latest")
        if word.isdigit():
            return dict.fromkeys(places, int(word))
        if word not in ("earliest", "latest"):
            raise OSError(f"the offset {word!r} is none: earliest, latest, or a number that is not below 0")
        return self._at(places, EARLIEST if word == "earliest" else LATEST)

    def _at(self, places: Sequence[tuple[str, int]], timestamp: int) -> Positions:
        found: Positions = {}
        for topic in {topic for topic, _ in places}:
            leaders = {each: self._leaders[topic][each] for name, each in places if name == topic}
            offsets = self._client.offsets_at(topic, leaders, timestamp)
            found.update({(topic, each): offset for each, offset in offsets.items()})
        return found

    def _fetched(self, positions: Positions) -> list[In]:
        """One Fetch of each topic and leader; leaders that have moved are looked up again."""
        rounds: dict[tuple[str, int], dict[int, int]] = {}
        for (topic, partition), offset in positions.items():
            rounds.setdefault((topic, self._leaders[topic][partition]), {})[partition] = offset
        found: list[In] = []
        for (topic, leader), wanted in rounds.items():
            wait_ms = 0 if found else WAIT_MS // len(rounds)
            try:
                answers = self._client.fetched(topic, wanted, leader, committed=self._is_committed, wait_ms=wait_ms)
            except OSError as error:
                if isinstance(error, RequestFailedError):
                    raise
                self._moved(topic)
                continue
            for answered in answers:
                partition = answered.partition_index
                if answered.error_code in LEADER_MOVES:
                    self._moved(topic)
                elif answered.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    positions.update(self._at([(topic, partition)], self._reset))
                else:
                    check(f"{topic}-{partition}", answered.error_code)
                    read = {partition: wanted[partition]}
                    records = list(records_in(topic, answered, read, committed=self._is_committed))
                    found += records
                    if not records:  # markers and aborted records are passed
                        positions[topic, partition] = read[partition]
        return found

    def _moved(self, topic: str) -> None:
        time.sleep(RETRY_PAUSE_S)
        self._leaders[topic] = self._client.leaders_made(topic, create=False)
