"""The commands `momus produce` and `momus consume`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import click

from momus.cli.commands import _bootstrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from momus.cli.records.client import RecordClient
    from momus.cli.records.text import In, Out

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NAMES = {"key_delimiter": "key-delimiter", "empty_is_null": "null", "show_null": "null"}
BATCH_RECORDS, BATCH_BYTES = 500, 512 << 10


def _connect(bootstrap: str, timeout_s: float) -> RecordClient:
    from momus.cli.records.client import RecordClient

    return RecordClient(bootstrap, timeout_s=timeout_s)


@click.command()
@click.option("-t", "--topic", required=True, metavar="TOPIC", help="Where to; it is made if the broker does so.")
@click.option("-p", "--partition", type=click.IntRange(0), help="Always this one.  [default: by the key, as Java does]")
@click.option("-k", "--key", help="The key of all records.")
@click.option("-K", "--key-delimiter", metavar="DELIMITER", help=r"A line is KEY DELIMITER VALUE; \t, \x1e are read.")
@click.option("-D", "--delimiter", metavar="DELIMITER", help=r"What ends a record.  [default: \n]")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="Of all records; repeatable.")
@click.option("-z", "--compression", type=click.Choice(CODECS), default="none", show_default=True)
@click.option("-Z", "--null", "empty_is_null", is_flag=True, help="An empty value or key is null: a tombstone.")
@click.option("--timestamp", metavar="TIME", help="Of all records: Unix milliseconds, ISO time, or 1h ago.")
@click.option("--acks", type=click.Choice(["1", "all"]), default="all", show_default=True)
@click.option(
    "-J", "--json", "as_json", is_flag=True, help="Each line is a record, as `momus consume --json` writes it."
)
@click.option("-v", "--value", "values", multiple=True, help="A record; repeatable. Nothing is read then.")
@click.option("-q", "--quiet", is_flag=True, help="Do not print where the records are.")
@click.argument("files", nargs=-1, type=click.File("rb"), metavar="[FILE]...")
@_bootstrap
def produce(
    topic: str,
    partition: int | None,
    compression: str,
    acks: str,
    quiet: bool,
    files: tuple[BinaryIO, ...],
    bootstrap: str,
    timeout_s: float,
    **words: Any,
) -> None:
    """Write records: a line of standard input each, or a FILE each. Prints the partition and the offset of each.

    Records without a key go to each partition in turn, from 0 on. Exit code 1: a record was refused, or no broker
    answers. Those before it are in the topic.
    """
    from momus.cli.records.text import FormatError

    _refuse_together("--json", words["as_json"], words, ("key", "key_delimiter", "empty_is_null"))
    _refuse_together("--key", words["key"] is not None, words, ("key_delimiter",))
    _refuse_together("--value", words["values"], words, ("delimiter",))
    _refuse_together("FILE", files, words, ("delimiter",))
    if words["values"] and files:
        raise click.UsageError("--value or FILE, not both")
    with _connect(bootstrap, timeout_s) as client:
        from protocol.compression import CODEC_NAMES

        codec = CODEC_NAMES.index(compression)
        sender = _Sender(client, topic, partition, codec, -1 if acks == "all" else 1)
        sender.is_quiet = quiet
        try:
            for record in _records(files, **words):
                sender.add(record)
        except FormatError as error:
            sender.flush()
            raise click.UsageError(str(error)) from None
        sender.flush()


def _refuse_together(option: str, is_given: object, words: dict[str, Any], others: tuple[str, ...]) -> None:
    """Refuse options that another one leaves without effect. Errors: UsageError."""
    for other in others:
        if is_given and words[other] not in (None, False):
            raise click.UsageError(f"{option} or --{NAMES.get(other, other)}, not both")


class _Sender:
    """Collects records, sends those of a partition together, and prints where each of them is. What was read before an
    error is sent."""

    is_quiet = False
    _has_told = False

    def __init__(self, client: RecordClient, topic: str, partition: int | None, codec: int, acks: int) -> None:
        self._client = client
        self._topic = topic
        self._partition = partition
        self._how = {"codec": codec, "acks": acks}
        self._count = len(client.leaders_made(topic, create=True))
        self._waiting: dict[int, list[Out]] = {}
        self._order: list[tuple[int, int]] = []  # partition, and place among those that wait for it
        self._bytes = 0
        self._turn = 0
        if partition is not None:
            self._check(partition)

    def add(self, record: Out) -> None:
        from protocol.partitioner import choose_partition

        partition = record.partition if self._partition is None else self._partition
        if self._partition is None and partition is not None and partition >= self._count:
            self._tell_of_absent(partition)
            partition = None
        if partition is None:
            partition = choose_partition(record.key, self._count, self._turn)
            self._turn += record.key is None
        self._check(partition)
        rows = self._waiting.setdefault(partition, [])
        self._order.append((partition, len(rows)))
        rows.append(record)
        self._bytes += len(record.key or b"") + len(record.value or b"")
        if len(rows) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES or sys.stdin.isatty():
            self.flush()

    def _tell_of_absent(self, partition: int) -> None:
        """A line of JSON is of a topic that has more partitions: it goes where its key says."""
        if not self._has_told:
            self._has_told = True
            there = f"{self._topic} has no partition {partition}, but 0 to {self._count - 1}"
            click.echo(f"momus: {there}: records of such partitions go by their keys", err=True)

    def flush(self) -> None:
        bases: dict[int, int] = {}
        try:
            for partition, rows in self._waiting.items():
                bases[partition] = self._client.produce(self._topic, partition, rows, **self._how)
        finally:
            places = [(partition, place) for partition, place in self._order if partition in bases]
            if places and not self.is_quiet:
                click.echo("\n".join(f"{partition} {bases[partition] + place}" for partition, place in places))
        self._waiting.clear()
        self._order.clear()
        self._bytes = 0

    def _check(self, partition: int) -> None:
        if partition >= self._count:
            raise click.UsageError(f"{self._topic} has no partition {partition}, but 0 to {self._count - 1}")


def _records(
    files: tuple[BinaryIO, ...],
    key: str | None,
    key_delimiter: str | None,
    delimiter: str | None,
    headers: tuple[str, ...],
    empty_is_null: bool,
    timestamp: str | None,
    as_json: bool,
    values: tuple[str, ...],
) -> Iterator[Out]:
    """What to write. Errors: FormatError, UsageError."""
    from momus.cli.records.places import PlaceError, moment_ms
    from momus.cli.records.text import FormatError, Out, read_json_line

    try:
        timestamp_ms = None if timestamp is None else moment_ms(timestamp)
    except PlaceError as error:
        raise click.BadParameter(str(error), param_hint="--timestamp") from None
    common: list[tuple[str, bytes | None]] = []
    for header in headers:
        name, equals, text = header.partition("=")
        common.append((name, text.encode() if equals else None))
    between = None if key_delimiter is None else _delimiter("--key-delimiter", key_delimiter)
    given = [value.encode() for value in values] or (
        (file.read() for file in files)
        if files
        else _pieces(sys.stdin.buffer, b"\n" if delimiter is None else _delimiter("--delimiter", delimiter))
    )
    for number, data in enumerate(given, 1):
        if as_json:
            try:
                record = read_json_line(data.decode())
            except (FormatError, UnicodeDecodeError) as error:
                raise FormatError(f"record {number}: {error}") from None
            own_ms = record.timestamp_ms if timestamp_ms is None else timestamp_ms
            yield record._replace(headers=[*record.headers, *common], timestamp_ms=own_ms)
            continue
        own_key: bytes | None = None if key is None else key.encode()
        value: bytes | None = data
        if between is not None:
            own_key, found, value = data.partition(between)
            if not found:
                raise FormatError(f"record {number} has no {key_delimiter!r} between key and value")
        if empty_is_null:
            own_key, value = own_key or None, value or None
        yield Out(own_key, value, common, None, timestamp_ms)


def _delimiter(option: str, text: str) -> bytes:
    """What is between records, or between key and value. Errors: FormatError, UsageError."""
    from momus.cli.records.text import unescape

    if not text:
        raise click.UsageError(f"{option} is empty: nothing could be told apart")
    return unescape(text).encode()


def _pieces(file: BinaryIO, delimiter: bytes) -> Iterator[bytes]:
    """What is between delimiters; the last one may go without. Lines come as soon as they are typed."""
    if delimiter == b"\n":
        yield from (line.removesuffix(b"\n") for line in file)
        return
    left = b""
    while data := file.read(1 << 16):
        *whole, left = (left + data).split(delimiter)
        yield from whole
    if left:
        yield left


@click.command()
@click.option("-t", "--topic", required=True, metavar="TOPIC")
@click.option(
    "-p", "--partition", "partitions", multiple=True, type=click.IntRange(0), help="Only this one; repeatable."
)
@click.option(
    "-o",
    "--offset",
    "places",
    multiple=True,
    metavar="PLACE",
    help="Where to begin: beginning (the default), end, stored (with -g), an offset, -N for N before the end, s@TIME."
    " e@TIME says where to stop. TIME: Unix milliseconds, 2030-01-01T00:00Z, or 1h for an hour ago.",
)
@click.option("-g", "--group", help="With -o stored: begin where this group has committed. It is not joined.")
@click.option("-c", "--count", type=click.IntRange(1), help="Stop after so many.")
@click.option("-e", "--exit", "until_end", is_flag=True, help="Stop at the end.")
@click.option("--idle", "idle_s", type=float, metavar="SECONDS", help="Stop when nothing has come for so long.")
@click.option(
    "--isolation",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
    help="Whether records of open and aborted transactions are left out.",
)
@click.option(
    "-f",
    "--format",
    "form",
    metavar="FORMAT",
    help=r"As kcat: %s value, %S its length, %R the same in four bytes, %k key, %K its length, %t topic, %p partition,"
    r" %o offset, %T time in ms, %h headers, %%, \n, \t, \xHH.",
)
@click.option("-K", "--key-delimiter", metavar="DELIMITER", help="Show KEY DELIMITER VALUE.")
@click.option("-D", "--delimiter", metavar="DELIMITER", help=r"What ends a record.  [default: \n]")
@click.option("-Z", "--null", "show_null", is_flag=True, help="Show null as NULL.")
@click.option("-J", "--json", "as_json", is_flag=True, help="A JSON document each, in a line.")
@_bootstrap
def consume(
    topic: str,
    partitions: tuple[int, ...],
    places: tuple[str, ...],
    group: str | None,
    count: int | None,
    until_end: bool,
    idle_s: float | None,
    isolation: str,
    bootstrap: str,
    timeout_s: float,
    **words: Any,
) -> None:
    """Read records, from the beginning and for ever unless told otherwise.

    Exit code 1: the topic, a partition or an offset is not there, or no broker answers.
    """
    from momus.cli.records.places import PlaceError, find, places_of

    for option, is_given in (("--json", words["as_json"]), ("--format", words["form"] is not None)):
        _refuse_together(option, is_given, words, ("key_delimiter", "show_null", "delimiter"))
    write = _writer(**words)
    try:
        wanted = places_of(places)
    except PlaceError as error:
        raise click.BadParameter(str(error), param_hint="--offset") from None
    if (wanted.start == "stored") != (group is not None):
        raise click.UsageError("-o stored and -g GROUP belong together")
    with _connect(bootstrap, timeout_s) as client:
        leaders = client.leaders_made(topic, create=False)
        absent = [each for each in partitions if each not in leaders]
        if absent:
            raise click.ClickException(f"{topic} has no partition {absent[0]}, but 0 to {len(leaders) - 1}")
        leaders = {each: leader for each, leader in leaders.items() if not partitions or each in partitions}
        positions, ends = find(client, topic, leaders, wanted, group)
        records = client.read(
            topic, positions, ends, committed=isolation == "read_committed", until_end=until_end, idle_s=idle_s
        )
        _print(records, write, count)


def _print(records: Iterable[In], write: Any, count: int | None) -> None:
    for number, record in enumerate(records, 1):
        sys.stdout.buffer.write(write(record))
        sys.stdout.buffer.flush()
        if number == count:
            return


def _writer(form: str | None, key_delimiter: str | None, delimiter: str | None, show_null: bool, as_json: bool) -> Any:
    """What makes the bytes that are printed of a record. Errors: UsageError."""
    from momus.cli.records.text import FormatError, compile_format, json_line, unescape

    if as_json:
        if form is not None:
            raise click.UsageError("--json or --format, not both")
        return lambda record: json_line(record).encode() + b"\n"
    try:
        if form is not None:
            return compile_format(form)
        end = b"\n" if delimiter is None else unescape(delimiter).encode()
        between = None if key_delimiter is None else unescape(key_delimiter).encode()
    except FormatError as error:
        raise click.UsageError(str(error)) from None
    null = b"NULL" if show_null else b""

    def plain(record: In) -> bytes:
        value = null if record.value is None else record.value
        if between is None:
            return value + end
        return (null if record.key is None else record.key) + between + value + end

    return plain
