"""The commands that ask a broker over the wire, as any client does: `topic ...`, `group ...`, `health`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from momus.cli.connect_options import client_options
from momus.cli.say import say, say_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from momus.client.kafka_client import Client

F = TypeVar("F", bound=Callable[..., object])


def _bootstrap(command: F) -> F:
    timeout = click.option("--timeout", "timeout_s", default=10.0, show_default=True, help="Seconds to wait.")(command)
    with_options: F = client_options(timeout)
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
    )(with_options)


def _json(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def _connect(bootstrap: str, timeout_s: float) -> Client:
    from momus.client.kafka_client import Client

    return Client(bootstrap, timeout_s=timeout_s)


@click.command()
@_bootstrap
def health(bootstrap: str, timeout_s: float) -> None:
    """Exit 0 when the broker answers, 1 when it does not. Says where its schema registry is, if it serves one."""
    with _connect(bootstrap, timeout_s) as client:
        client.cluster()
        registry = client.broker_setting("registry.url")
    click.echo("ok")
    if registry:
        click.echo(f"registry {registry}")


@click.group()
def topic() -> None:
    """List, create, describe, alter and delete topics."""


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
@click.argument("names", nargs=-1, metavar="NAME[=PARTITIONS]...")
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
    """Create topics: `momus topic create orders=6 kept`."""
    from momus.client.properties import parse_assignments

    try:
        configs = parse_assignments(assignments)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--topic-config") from None
    wanted = {}
    for text in _names(names, more):
        name, given, number = text.partition("=")  # which no name of a topic has
        if given and not (number.isascii() and number.isdigit()):
            raise click.BadParameter(f"{text!r} is not NAME=PARTITIONS", param_hint="NAME")
        wanted[name] = int(number) if given else partitions
    with _connect(bootstrap, timeout_s) as client:
        results = client.create_topics(wanted, replicas, configs)
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
        say_json(topics)
    else:
        for described in topics:
            say(f"{described['name']}  id {described['topic_id']}")
            for key, value in described["configs"].items():
                say(f"  {key}={value}")
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


@click.group()
def group() -> None:
    """List, describe and delete consumer groups, and move what they have committed."""


@group.command("list")
@_json
@_bootstrap
def group_list(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List groups."""
    with _connect(bootstrap, timeout_s) as client:
        groups = client.groups()
    _show(as_json, groups, ("group", "state", "type", "protocol_type", "coordinator"))


MEMBER_COLUMNS = {
    "": (),
    "classic": ("member", "instance", "client", "host", "has"),
    "consumer": ("member", "instance", "client", "host", "epoch", "has", "target"),
    "streams": ("member", "instance", "client", "host", "epoch", "has", "target"),
    "share": ("member", "client", "host", "epoch", "has"),
}
OFFSET_COLUMNS = ("topic", "partition", "committed", "end", "lag", "metadata")
SHARE_COLUMNS = ("topic", "partition", "committed", "lag")


@group.command("describe")
@click.argument("names", nargs=-1)
@click.option("-g", "--group", "more", multiple=True, metavar="GROUP", help="Same as an argument.")
@_json
@_bootstrap
def group_describe(
    names: tuple[str, ...], more: tuple[str, ...], as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """Show members, offsets and lag of groups of every type."""
    wanted = _names(names, more, "group")
    with _connect(bootstrap, timeout_s) as client:
        groups = [client.describe_group(name) for name in wanted]
    if as_json:
        say_json(groups)
    else:
        for described in groups:
            epochs = f"  epoch {described['group_epoch']}" if described["group_epoch"] >= 0 else ""
            say(
                f"{described['group']}  {described['type'] or '-'}  {described['state']}{epochs}"
                f"  coordinator {described['coordinator']}"
            )
            _table([_with_places(each, described) for each in described["members"]], MEMBER_COLUMNS[described["type"]])
            share = described["type"] == "share"
            if (letters := described.get("dead_letters")) and letters["queue"]:
                why_not = f"  ({letters['why_not']})" if letters["why_not"] else ""
                copies = "with" if letters["copies"] else "without"
                say(f"dead letters go to {letters['queue']}, {copies} the record{why_not}")
            _table(described["offsets"], SHARE_COLUMNS if share else OFFSET_COLUMNS)
    if any(described["state"] == "Dead" and not described["offsets"] for described in groups):
        raise SystemExit(1)  # what Kafka answers for a group that does not exist


def _with_places(member: dict[str, Any], group: dict[str, Any]) -> dict[str, object]:
    """A member with what it has, and shall have, by name in place of by number."""
    mine = [each for each in group["assignments"] if each["member"] == member["member"]]
    has = sorted(each["partition"] for each in mine if each["state"] != "to come")
    target = sorted(each["partition"] for each in mine if each["state"] != "to give up")
    return {**member, "has": has, "target": target}


def _names(arguments: tuple[str, ...], options: tuple[str, ...], what: str = "topic") -> list[str]:
    names = [*arguments, *options]
    if not names:
        raise click.UsageError(f"name at least one {what}")
    return names


def _show(as_json: bool, rows: list[dict[str, object]], columns: tuple[str, ...]) -> None:
    if as_json:
        say_json(rows)
    else:
        _table(rows, columns)


def _report(as_json: bool, results: list[dict[str, object]], done: str) -> None:
    """Say what became of each; exit 1 if any was refused."""
    if as_json:
        say_json(results)
    else:
        for result in results:
            if result["error"] is None:
                say(f"{done} {result['name']}")
            else:
                say(f"{result['name']}: {result['error']}: {result['message'] or ''}".rstrip(": "), err=True)
    if any(result["error"] is not None for result in results):
        raise SystemExit(1)


def _table(rows: list[dict[str, object]], columns: tuple[str, ...]) -> None:
    """Print rows under their headings, columns as wide as their widest cell."""
    if not rows:
        return
    cells = [
        [column.upper().replace("_", "-") for column in columns],
        *([_cell(row.get(c)) for c in columns] for row in rows),
    ]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: object) -> str:
    if value is None or value in ("", []):
        return "-"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
