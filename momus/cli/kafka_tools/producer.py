"""`kafka-console-producer`: each line of standard input is a record."""

from __future__ import annotations

import io
import select
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import click

from momus.cli.kafka_tools.options import Options, assignments, bootstrap_options, use_settings, without_effect
from momus.cli.records.client import RecordClient
from momus.cli.records.commands import _Sender as Sender
from momus.cli.records.text import FormatError, Out
from protocol.compression import CODEC_NAMES

READER = "org.apache.kafka.tools.LineMessageReader"
OF_THE_CLIENT = (  # buffers and waits of Java's producer
    "--batch-size",
    "--max-block-ms",
    "--max-memory-bytes",
    "--max-partition-memory-bytes",
    "--message-send-max-retries",
    "--metadata-expiry-ms",
    "--request-timeout-ms",
    "--retry-backoff-ms",
    "--socket-buffer-size",
    "--timeout",
)
ACKS = {"1": 1, "all": -1, "-1": -1, "0": 1}  # 0 would tell of no failure: a reply is waited for
PROPERTIES = {
    "parse.key": "false",
    "parse.headers": "false",
    "ignore.error": "false",
    "key.separator": "\t",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
    "null.marker": "",
}


class Reader(NamedTuple):
    """How a line is a record: [headers TAB] [key TAB] value."""

    has_key: bool
    has_headers: bool
    is_lenient: bool
    properties: dict[str, str]

    def record(self, line: bytes, number: int) -> Out:
        """Errors: FormatError: a part is missing."""
        key: bytes | None = None
        headers: list[tuple[str, bytes | None]] = []
        rest = line
        if self.has_headers:
            text, rest = self._cut(rest, "headers.delimiter", "headers delimiter", number)
            headers = [] if text is None else self._headers(text, number)
        if self.has_key:
            key, rest = self._cut(rest, "key.separator", "key separator", number)
        return Out(key, self._or_null(rest), headers)

    def _cut(self, line: bytes, name: str, title: str, number: int) -> tuple[bytes | None, bytes]:
        before, found, after = line.partition(self.properties[name].encode())
        if found:
            return self._or_null(before), after
        if self.is_lenient:
            return None, line
        raise FormatError(f"No {title} found on line number {number}: '{line.decode(errors='replace')}'")

    def _headers(self, text: bytes, number: int) -> list[tuple[str, bytes | None]]:
        found = []
        for pair in text.split(self.properties["headers.separator"].encode()):
            name, between, value = pair.partition(self.properties["headers.key.separator"].encode())
            if not between and not self.is_lenient:
                raise FormatError(
                    f"No header key separator found in pair '{pair.decode(errors='replace')}' on line number {number}"
                )
            found.append((name.decode(), self._or_null(value) if between else None))
        return found

    def _or_null(self, text: bytes) -> bytes | None:
        marker = self.properties["null.marker"].encode()
        return None if marker and text == marker else text


def run(tool: str, words: Sequence[str]) -> None:
    """Write what comes. Errors: OSError, FormatError: those before it are written; ends the tool."""
    options = Options(tool)
    bootstrap_options(options)
    options.text(
        "--broker-list", "--topic", "--producer.config", "--reader-config", "--request-required-acks", *OF_THE_CLIENT
    )
    options.text("--line-reader", default=READER)
    options.text("--compression-codec", nargs="?", const="gzip", default="none")
    options.flags("--sync")
    options.repeated("--property", "--reader-property", "--producer-property", "--command-property")
    given = options.read(words)
    bootstrap = given.bootstrap_server or given.broker_list
    for name, value in (("topic", given.topic), ("bootstrap-server", bootstrap)):
        if value is None:
            options.error(f'Missing required argument "[{name}]"')
    if given.line_reader not in (READER, "kafka.tools.ConsoleProducer$LineMessageReader"):
        options.error(f"--line-reader {given.line_reader} is not here: lines are read")
    without_effect(options, given, OF_THE_CLIENT)
    client_words = [*given.producer_property, *given.command_property]
    settings = use_settings(options, [getattr(given, "producer.config"), given.command_config], client_words)
    codec = settings.get("compression.type", given.compression_codec)
    acks = given.request_required_acks or settings.get("acks", "all")
    if codec not in CODEC_NAMES or acks not in ACKS:
        options.error(f"there is no compression {codec}" if codec not in CODEC_NAMES else f"there are no acks={acks}")
    reader = _reader(options, given.reader_config, [*given.property, *given.reader_property])
    with RecordClient(bootstrap) as client:
        sender = Sender(client, given.topic, None, CODEC_NAMES.index(codec), ACKS[acks])
        sender.is_quiet = True
        try:
            for number, line in enumerate(_lines(sender), 1):
                sender.add(reader.record(line, number))
        finally:
            sender.flush()


def _reader(options: Options, file: str | None, words: Sequence[str]) -> Reader:
    """How lines are read. Errors: ends the tool."""
    from momus.client.properties import parse_properties

    found: dict[str, str] = {}
    if file is not None:
        try:
            with open(file, encoding="utf-8") as opened:
                found = parse_properties(opened.read())
        except (OSError, ValueError) as error:
            options.error(f"{file}: {getattr(error, 'strerror', None) or error}")
    found.update(assignments(options, words))
    unknown = sorted(found.keys() - PROPERTIES.keys())
    if unknown:
        options.error(f"{unknown[0]} is no property of the reader here: {', '.join(PROPERTIES)}")
    every = {**PROPERTIES, **found}
    is_on = {key: text.strip().lower() == "true" for key, text in every.items()}
    return Reader(is_on["parse.key"], is_on["parse.headers"], is_on["ignore.error"], every)


def _lines(sender: Sender) -> Iterator[bytes]:
    """Lines of standard input. What came is sent as soon as no more is waiting."""
    prompt = sys.stdin.isatty()
    given = cast("io.BufferedReader", sys.stdin.buffer)
    left = b""
    while True:
        if prompt:
            click.echo(">", nl=False)
        data = given.read1(1 << 16)
        *whole, left = (left + data).split(b"\n")
        yield from (line.removesuffix(b"\r") for line in whole)
        if not data:
            break
        if not _more_waits(given):
            sender.flush()
    if left:
        yield left


def _more_waits(given: io.BufferedReader) -> bool:
    """Whether standard input has more at once, if only its end."""
    try:
        return bool(select.select([given.fileno()], [], [], 0)[0])
    except io.UnsupportedOperation:  # no file, so nothing to wait for
        return True
