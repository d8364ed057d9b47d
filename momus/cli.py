"""The command line: `momus serve`, `momus topic ...`, `momus group ...`, `momus health`.

Exit codes: 0 good, 1 refused or failed, 2 bad usage. `serve` imports click and nothing else before the
broker; the other commands talk to any broker over the wire and import the codec when they run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TypeVar

import click

from momus import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from momus.client import Client

DEFAULT_LISTEN = "127.0.0.1:9092"
DEFAULT_DATA_DIR = "./data"

F = TypeVar("F", bound=Callable[..., object])


def _bootstrap(command: F) -> F:
    return click.option(
        "-b",
        "--bootstrap-server",
        "--bootstrap-servers",
        "bootstrap",
        default="localhost:9092",
        envvar="MOMUS_BOOTSTRAP_SERVERS",
        show_default=True,
        metavar="HOST:PORT[,...]",
        help="Any broker of the cluster.",
    )(click.option("--timeout", "timeout_s", default=10.0, show_default=True, help="Seconds to wait.")(command))


def _json(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def _connect(bootstrap: str, timeout_s: float) -> Client:
    from momus import launch

    launch.use_packages()
    from momus.client import Client

    return Client(bootstrap, timeout_s=timeout_s)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="momus %(version)s")
def cli() -> None:
    """A Kafka-protocol broker for tests, CI and laptops."""


@cli.command()
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help=f"Where to listen; port 0 lets the system choose.  [default: {DEFAULT_LISTEN}]",
)
@click.option(
    "-d",
    "--data-dir",
    type=click.Path(file_okay=False),
    help=f"Where the data lies; one broker at a time.  [default: {DEFAULT_DATA_DIR}]",
)
@click.option("--brokers", type=click.IntRange(1, 100), default=1, show_default=True, help="Virtual brokers.")
@click.option(
    "--flush",
    type=click.Choice(["memory", "os", "fsync"]),
    default="os",
    show_default=True,
    help="What a reply waits for: nothing, write(2) (survives kill -9), fdatasync(2) (survives power loss).",
)
@click.option("--config", "config_file", type=click.File(encoding="utf-8"), help="Kafka's server.properties.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="One Kafka broker setting; repeatable.")
@click.option(
    "-l",
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="warning",
    show_default=True,
)
@click.option("--statsd", metavar="HOST:PORT", help="Send DogStatsD metrics there over UDP.")
def serve(
    listen: str | None,
    data_dir: str | None,
    brokers: int,
    flush: str,
    config_file: IO[str] | None,
    assignments: tuple[str, ...],
    log_level: str,
    statsd: str | None,
) -> None:
    """Run a broker until SIGTERM or SIGINT.

    Settings come from --config, then KAFKA_... variables as in Kafka's Docker image, then --set; the later
    wins. The first line on standard output is `momus ready HOST:PORT[,...]`.
    """
    from momus import launch
    from momus.properties import parse_assignments, parse_environment, parse_properties

    settings = parse_properties(config_file.read()) if config_file else {}
    settings.update(parse_environment(os.environ))
    try:
        settings.update(parse_assignments(assignments))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--set") from None
    if listen is None and "listeners" not in settings:
        listen = DEFAULT_LISTEN
    for option, address in (("--listen", listen), ("--statsd", statsd)):
        if address is not None:
            _check_address(option, address)
    if data_dir is None:
        data_dir = settings.get("log.dirs", settings.get("log.dir", DEFAULT_DATA_DIR)).split(",")[0]

    launch.use_packages()
    from broker.server import serve as serve_broker

    raise SystemExit(
        serve_broker(
            listen=listen,
            data_dir=data_dir,
            brokers=brokers,
            flush=flush,
            properties=settings,
            log_level=log_level,
            statsd=statsd,
        )
    )


def _check_address(option: str, addresses: str) -> None:
    for address in addresses.split(","):
        host, colon, port = address.rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise click.BadParameter(f"{address!r} is not HOST:PORT", param_hint=option)


@cli.command()
@_bootstrap
def health(bootstrap: str, timeout_s: float) -> None:
    """Exit 0 when the broker answers, 1 when it does not."""
    with _connect(bootstrap, timeout_s) as client:
        client.cluster()
    click.echo("ok")


@cli.group()
def topic() -> None:
    """List, create, describe and delete topics."""


@topic.command("list")
@click.option("--internal", is_flag=True, help="Show the broker's own topics too.")
@_json
@_bootstrap
def topic_list(internal: bool, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List topics."""
    with _connect(bootstrap, timeout_s) as client:
        topics = [t for t in client.topics() if internal or not t["internal"]]
    _show(as_json, topics, ("name", "partitions", "replicas"))


@topic.command("create")
@click.argument("names", nargs=-1)
@click.option("-t", "--topic", "more", multiple=True, metavar="NAME", help="Same as an argument.")
@click.option(
    "-p",
    "--partitions",
    type=int,
    default=-1,
    help="Number of partitions; the broker's default if not given.",
)
@click.option("-r", "--replicas", type=int, default=-1, help="Replication factor; the broker's default if not given.")
@click.option(
    "-c",
    "--topic-config",
    "-X",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Topic setting; repeatable.",
)
@click.option("--if-not-exists", is_flag=True, help="A topic that is there already is no failure.")
@_json
@_bootstrap
def topic_create(
    names: tuple[str, ...],
    more: tuple[str, ...],
    partitions: int,
    replicas: int,
    assignments: tuple[str, ...],
    if_not_exists: bool,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Create topics."""
    from momus.properties import parse_assignments

    try:
        configs = parse_assignments(assignments)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--topic-config") from None
    wanted = _names(names, more)
    with _connect(bootstrap, timeout_s) as client:
        results = client.create_topics(wanted, partitions, replicas, configs)
    if if_not_exists:
        results = [r | {"error": None} if r["error"] == "TOPIC_ALREADY_EXISTS" else r for r in results]
    _report(as_json, results, "created")


@topic.command("describe")
@click.argument("names", nargs=-1)
@click.option("-t", "--topic", "more", multiple=True, metavar="NAME", help="Same as an argument.")
@_json
@_bootstrap
def topic_describe(
    names: tuple[str, ...], more: tuple[str, ...], as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """Show partitions, offsets and settings of topics."""
    wanted = _names(names, more)
    with _connect(bootstrap, timeout_s) as client:
        topics = client.describe_topics(wanted)
    if as_json:
        _print_json(topics)
    else:
        for described in topics:
            click.echo(f"{described['name']}  id {described['topic_id']}")
            for key, value in described["configs"].items():
                click.echo(f"  {key}={value}")
            _table(
                described["partitions"],
                ("partition", "leader", "leader_epoch", "replicas", "isr", "start", "end"),
            )


@topic.command("delete")
@click.argument("names", nargs=-1)
@click.option("-t", "--topic", "more", multiple=True, metavar="NAME", help="Same as an argument.")
@_json
@_bootstrap
def topic_delete(
    names: tuple[str, ...], more: tuple[str, ...], as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """Delete topics and what they hold."""
    wanted = _names(names, more)
    with _connect(bootstrap, timeout_s) as client:
        results = client.delete_topics(wanted)
    _report(as_json, results, "deleted")


@cli.group()
def group() -> None:
    """List and describe consumer groups."""


@group.command("list")
@_json
@_bootstrap
def group_list(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List groups."""
    with _connect(bootstrap, timeout_s) as client:
        groups = client.groups()
    _show(as_json, groups, ("group", "state", "type", "protocol_type", "coordinator"))


@group.command("describe")
@click.argument("names", nargs=-1)
@click.option("-g", "--group", "more", multiple=True, metavar="GROUP", help="Same as an argument.")
@_json
@_bootstrap
def group_describe(
    names: tuple[str, ...], more: tuple[str, ...], as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """Show members, committed offsets and lag of groups."""
    wanted = _names(names, more, "group")
    with _connect(bootstrap, timeout_s) as client:
        groups = [client.describe_group(name) for name in wanted]
    if as_json:
        _print_json(groups)
    else:
        for described in groups:
            click.echo(f"{described['group']}  {described['state']}  coordinator {described['coordinator']}")
            _table(described["members"], ("member_id", "instance_id", "client_id", "host", "assignment"))
            _table(described["offsets"], ("topic", "partition", "committed", "end", "lag", "metadata"))
    if any(described["state"] == "Dead" and not described["offsets"] for described in groups):
        raise SystemExit(1)  # what Kafka answers for a group that does not exist


def _names(arguments: tuple[str, ...], options: tuple[str, ...], what: str = "topic") -> list[str]:
    names = [*arguments, *options]
    if not names:
        raise click.UsageError(f"name at least one {what}")
    return names


def _print_json(value: object) -> None:
    import json

    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def _show(as_json: bool, rows: list[dict[str, object]], columns: tuple[str, ...]) -> None:
    if as_json:
        _print_json(rows)
    else:
        _table(rows, columns)


def _report(as_json: bool, results: list[dict[str, object]], done: str) -> None:
    """Say what became of each; exit 1 if any was refused."""
    if as_json:
        _print_json(results)
    else:
        for result in results:
            if result["error"] is None:
                click.echo(f"{done} {result['name']}")
            else:
                click.echo(f"{result['name']}: {result['error']}: {result['message'] or ''}".rstrip(": "), err=True)
    if any(result["error"] is not None for result in results):
        raise SystemExit(1)


def _table(rows: list[dict[str, object]], columns: tuple[str, ...]) -> None:
    """Print rows under their headings, columns as wide as their widest cell."""
    if not rows:
        return
    cells = [
        [column.upper().replace("_", "-") for column in columns],
        *([_cell(row[c]) for c in columns] for row in rows),
    ]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def main() -> None:
    """Entry point of the `momus` command."""
    try:
        cli(prog_name="momus")
    except OSError as error:
        click.echo(f"momus: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
