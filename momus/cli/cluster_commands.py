"""The commands for the clusters of a running process: `cluster list|create|reset|remove|snapshot|fork|restore|diff`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from momus.cli.control_commands import _connect
from momus.cli.control_place import Endpoint
from momus.cli.control_place import endpoint as _endpoint
from momus.cli.say import say, say_json
from momus.kit.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

F = TypeVar("F", bound=Callable[..., object])

PLACE = "/_admin/clusters"
DEFAULT = "default"


def _as_json(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def _ask(address: Endpoint, method: str, path: str, body: object = None) -> Any:
    """Errors: ClickException: the process refuses, and says why."""
    from momus.control import ControlError

    try:
        return _connect(address).ask(method, path, body)
    except ControlError as error:
        raise click.ClickException(str(error)) from None


def _given(**words: object) -> dict[str, object]:
    return {name: value for name, value in words.items() if value is not None}


def _show(answer: Any, as_json: bool, line: Callable[[Any], str]) -> None:
    if as_json:
        say_json(answer)
        return
    for each in answer if isinstance(answer, list) else [answer]:
        say(line(each))


def _cluster_line(cluster: Any) -> str:
    return f"{cluster['name']}  {cluster['bootstrap_servers']}  {cluster['flush']}"


def _snapshot_line(snapshot: Any) -> str:
    return f"{snapshot['name']}  {snapshot['files']} files  {snapshot['log_bytes']} bytes of records"


@click.group()
def cluster() -> None:
    """Make, reset, copy and remove clusters of one process.

    A snapshot keeps a cluster as it is. A fork is another cluster that goes on from there; restore goes back to it.
    """


@cluster.command("list")
@_as_json
@_endpoint
def cluster_list(as_json: bool, address: Endpoint) -> None:
    """List the clusters of the process."""
    _show(_ask(address, "GET", PLACE), as_json, _cluster_line)


@cluster.command("create")
@click.argument("name", required=False)
@click.option("--brokers", type=click.IntRange(1, 100), default=1, show_default=True, help="Virtual brokers.")
@click.option("--flush", type=click.Choice(["memory", "os", "fsync"]), default="memory", show_default=True)
@click.option("--listen", metavar="HOST:PORT", help="Where to listen.  [default: 127.0.0.1:0]")
@click.option("--seed", type=int, help="Draw all ids from this number, so that they repeat.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="One Kafka broker setting; repeatable.")
@_as_json
@_endpoint
def cluster_create(
    name: str | None,
    brokers: int,
    flush: str,
    listen: str | None,
    seed: int | None,
    assignments: Sequence[str],
    as_json: bool,
    address: Endpoint,
) -> None:
    """Make a cluster; without a NAME it gets one."""
    from momus.client.properties import parse_assignments

    try:
        config = parse_assignments(assignments)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--set") from None
    body = _given(name=name, brokers=brokers, flush=flush, listen=listen, seed=seed, config=config)
    _show(_ask(address, "POST", PLACE, body), as_json, _cluster_line)


@cluster.command("reset")
@click.argument("name", default=DEFAULT)
@_endpoint
def cluster_reset(name: str, address: Endpoint) -> None:
    """Drop all data and connections of a cluster; addresses and settings stay."""
    _ask(address, "POST", f"{PLACE}/{quoted(name)}/reset")
    click.echo(f"reset {name}")


@cluster.command("remove")
@click.argument("name")
@_endpoint
def cluster_remove(name: str, address: Endpoint) -> None:
    """Remove a cluster with its data and snapshots."""
    _ask(address, "DELETE", f"{PLACE}/{quoted(name)}")
    click.echo(f"removed {name}")


@cluster.command("snapshot")
@click.argument("name", default=DEFAULT)
@click.option("--as", "snapshot", metavar="SNAPSHOT", help="Its name; without one it gets one.")
@click.option("--list", "lists", is_flag=True, help="List the snapshots of the cluster instead, oldest first.")
@click.option("--remove", "removed", metavar="SNAPSHOT", help="Remove a snapshot instead.")
@_as_json
@_endpoint
def cluster_snapshot(
    name: str, snapshot: str | None, lists: bool, removed: str | None, as_json: bool, address: Endpoint
) -> None:
    """Keep a cluster as it is: its data, and how its clock was moved. No client notices."""
    if (snapshot is not None) + lists + (removed is not None) > 1:
        raise click.UsageError("give one of --as, --list and --remove")
    place = f"{PLACE}/{quoted(name)}/snapshots"
    if removed is not None:
        _ask(address, "DELETE", f"{place}/{quoted(removed)}")
        click.echo(f"removed {removed}")
    elif lists:
        _show(_ask(address, "GET", place), as_json, _snapshot_line)
    else:
        _show(_ask(address, "POST", place, _given(name=snapshot)), as_json, _snapshot_line)


@cluster.command("fork")
@click.argument("name", default=DEFAULT)
@click.option("--from", "snapshot", metavar="SNAPSHOT", help="Go on from a snapshot.  [default: from now]")
@click.option("--as", "fork", metavar="CLUSTER", help="The new cluster's name; without one it gets one.")
@click.option("--listen", metavar="HOST:PORT", help="Where to listen.  [default: the same host, another port]")
@_as_json
@_endpoint
def cluster_fork(
    name: str, snapshot: str | None, fork: str | None, listen: str | None, as_json: bool, address: Endpoint
) -> None:
    """Make another cluster that goes on from a cluster; neither sees the other."""
    body = _given(snapshot=snapshot, name=fork, listen=listen)
    _show(_ask(address, "POST", f"{PLACE}/{quoted(name)}/fork", body), as_json, _cluster_line)


@cluster.command("restore")
@click.argument("name", default=DEFAULT)
@click.option("--from", "snapshot", metavar="SNAPSHOT", required=True, help="The snapshot to go back to.")
@_endpoint
def cluster_restore(name: str, snapshot: str, address: Endpoint) -> None:
    """Go back to a snapshot, on the same ports; connections are cut."""
    _ask(address, "POST", f"{PLACE}/{quoted(name)}/restore", {"snapshot": snapshot})
    click.echo(f"restored {name} from {snapshot}")


@cluster.command("diff")
@click.argument("first", metavar="FIRST[@SNAPSHOT]")
@click.argument("second", metavar="SECOND[@SNAPSHOT]", default=DEFAULT)
@_as_json
@_endpoint
def cluster_diff(first: str, second: str, as_json: bool, address: Endpoint) -> None:
    """Show what is different between two clusters, or snapshots of them.

    `momus cluster diff @before` compares the snapshot `before` of the first cluster with what it is now. Exit code 1:
    something is different.
    """
    answer = _ask(address, "POST", "/_admin/diff", {"first": _side(first), "second": _side(second)})
    if as_json:
        say_json(answer)
    else:
        from momus.difference import difference_of

        for line in str(difference_of(answer)).splitlines():
            say(line)
    raise SystemExit(1 if answer["different"] else 0)


def _side(text: str) -> dict[str, str]:
    name, is_past, snapshot = text.partition("@")
    return {"cluster": name or DEFAULT, **({"snapshot": snapshot} if is_past else {})}
