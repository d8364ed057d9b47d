"""`momus offsets show|export|import|history` and `momus storage check|repair`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

import click

from momus.cli.commands import _bootstrap, _connect, _show
from momus.cli.repair_command import repair
from momus.cli.say import say, say_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

    Row = dict[str, Any]

F = TypeVar("F", bound=Callable[..., object])

EXPORTED = ("group", "topic", "partition", "offset", "leader_epoch", "metadata")


def _source(command: F) -> F:
    """Where to read from: a broker, or the files of one that is not running."""
    return click.option(
        "-d",
        "--data-dir",
        type=click.Path(exists=True, file_okay=False),
        help="Read the files of a broker that is not running, instead of asking one.",
    )(
        click.option("-g", "--group", "groups", multiple=True, metavar="GROUP", help="Only this group; repeatable.")(
            _bootstrap(command)
        )
    )


@click.group()
def offsets() -> None:
    """Show, move and trace committed offsets."""


@offsets.command("show")
@_source
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show(data_dir: str | None, groups: tuple[str, ...], bootstrap: str, timeout_s: float, as_json: bool) -> None:
    """Show what is committed."""
    rows = [{**row, "metadata": row["metadata"] or None} for row in _committed(data_dir, groups, bootstrap, timeout_s)]
    columns = ("group", "topic", "partition", "offset", "leader_epoch", "metadata")
    _show(as_json, rows, columns)


@offsets.command("export")
@_source
def export(data_dir: str | None, groups: tuple[str, ...], bootstrap: str, timeout_s: float) -> None:
    """Print what is committed as JSON lines, for `momus offsets import`."""

    for row in _committed(data_dir, groups, bootstrap, timeout_s):
        say_json({key: row[key] for key in EXPORTED}, indent=None)


@offsets.command("import")
@click.argument("file", type=click.File(encoding="utf-8"), default="-")
@_bootstrap
def import_(file: IO[str], bootstrap: str, timeout_s: float) -> None:
    """Commit what `momus offsets export` has printed; a group at a time, each as a whole.

    The group must not have members: stop its consumers first.
    """
    import json  # 1 ms

    by_group: dict[str, list[Row]] = {}
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            by_group.setdefault(str(row["group"]), []).append(
                {
                    "topic": str(row["topic"]),
                    "partition": int(row["partition"]),
                    "offset": int(row["offset"]),
                    "leader_epoch": int(row.get("leader_epoch", -1)),
                    "metadata": str(row.get("metadata") or ""),
                }
            )
        except (ValueError, KeyError, TypeError) as error:
            raise click.BadParameter(f"line {number} is no exported offset: {error}", param_hint="FILE") from None
    failed = 0
    with _connect(bootstrap, timeout_s) as client:
        for group, rows in by_group.items():
            refused = client.commit_offsets(group, rows)
            for row in refused:
                say(f"{group} {row['topic']}-{row['partition']}: {row['error']}", err=True)
            failed += len(refused)
            say(f"{group}: {len(rows) - len(refused)} committed")
    if failed:
        raise SystemExit(1)


@offsets.command("history")
@_source
@click.option("-t", "--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; repeatable.")
@click.option("-p", "--partition", "partitions", multiple=True, type=int, help="Only this partition; repeatable.")
@click.option(
    "--control",
    metavar="HOST:PORT",
    envvar="MOMUS_CONTROL",
    help="The broker's endpoint: also show refused commits, while its journal has them.",
)
@click.option("--cluster", metavar="NAME", help="Of a process with several clusters, the one at --bootstrap-server.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def history(
    data_dir: str | None,
    groups: tuple[str, ...],
    bootstrap: str,
    timeout_s: float,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    control: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Tell who set which offset when, as far back as the log goes; the newest last.

    Offsets of a transaction are shown with its outcome: committed, aborted or open. With --control also who was
    refused, with the error and the reason, as far back as the journal goes.
    """

    if data_dir is not None and cluster is not None:
        raise click.UsageError("--cluster is for a broker that runs, --data-dir for one that does not")
    found: list[Row] = []
    for index, batches in _logs(data_dir, bootstrap, timeout_s):
        from momus.client.offset_log import history as read_history

        found += [{**row, "refused": None, "why": None} for row in read_history(index, batches)]
    if data_dir is None and control is not None:
        found += [{**row, "outcome": None} for row in _refused(control, cluster, bootstrap, timeout_s)]
    rows = [
        row
        for row in found
        if (not groups or row["group"] in groups)
        and (not topics or row["topic"] in topics)
        and (not partitions or row["partition"] in partitions)
    ]
    rows.sort(key=lambda row: row["time_ms"])
    if as_json:
        for row in rows:
            say_json(row, indent=None)
        return
    for row in rows:
        when = datetime.fromtimestamp(row["time_ms"] / 1000, UTC)
        row["time"] = when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        row["offset"] = "deleted" if row["offset"] is None else row["offset"]
    columns = ["time", "group", "topic", "partition", "offset", "client", "member", "instance", "generation", "log"]
    columns += ["outcome"] if any(row["outcome"] for row in rows) else []
    columns += ["refused", "why"] if any(row["refused"] for row in rows) else []
    _show(False, rows, tuple(columns))


def _refused(address: str, cluster: str | None, bootstrap: str, timeout_s: float) -> list[Row]:
    """Rows of refused commits. Errors: ClickException."""
    from base64 import urlsafe_b64encode

    from momus.cli.control_commands import _connect as connect_to_control
    from momus.cli.control_place import find_endpoint
    from momus.client.refused_commits import refused_commits
    from momus.control import ControlError

    control = connect_to_control(find_endpoint(address, None))
    if cluster is not None:
        control = control.of_cluster(cluster)
    with _connect(bootstrap, timeout_s) as client:
        names = {
            urlsafe_b64encode(bytes(topic.topic_id)).decode().rstrip("="): topic.name
            for topic in client.cluster(None).topics
        }
    try:
        return list(refused_commits(control, lambda topic_id: names.get(topic_id, topic_id)))
    except ControlError as error:
        raise click.ClickException(str(error)) from None


def _logs(data_dir: str | None, bootstrap: str, timeout_s: float) -> Iterator[tuple[int, Any]]:
    if data_dir is not None:
        from momus.client.offset_log import logs_of_directory

        yield from logs_of_directory(data_dir)
        return
    with _connect(bootstrap, timeout_s) as client:
        from momus.client.offset_log import logs_of_broker

        yield from logs_of_broker(client)


def _committed(data_dir: str | None, groups: tuple[str, ...], bootstrap: str, timeout_s: float) -> list[Row]:
    rows: list[Row] = []
    if data_dir is not None:
        for _, batches in _logs(data_dir, bootstrap, timeout_s):
            from momus.client.offset_log import committed

            rows += committed(batches)
    else:
        with _connect(bootstrap, timeout_s) as client:
            # a share group commits none, and refuses to be asked
            listed = groups or [row["group"] for row in client.groups() if row["type"] != "share"]
            for group in listed:
                rows += client.committed_offsets(group)
    rows = [row for row in rows if not groups or row["group"] in groups]
    return sorted(rows, key=lambda row: (row["group"], row["topic"], row["partition"]))


@click.group()
def storage() -> None:
    """Look after the files of a data directory."""


storage.add_command(repair)


@storage.command("check")
@click.option("-d", "--data-dir", default="./data", show_default=True, type=click.Path(exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.argument("logs", nargs=-1, metavar="[TOPIC-PARTITION]...")
def check(data_dir: str, as_json: bool, logs: tuple[str, ...]) -> None:
    """Read logs (all of them if none is named) from end to end and say what is there. Nothing is changed.

    Exit code 1: something is damaged. While a broker writes, the last bytes of a log may look so.
    """
    from storage.files.env import system_env
    from storage.log.check import check as check_log

    files = system_env().files
    names = list(logs) or sorted(
        name
        for name in os.listdir(data_dir)
        if name.rpartition("-")[2].isdigit() and os.path.isdir(os.path.join(data_dir, name))
    )
    absent = [name for name in names if not os.path.isdir(os.path.join(data_dir, name))]
    if absent:
        raise click.BadParameter(f"{data_dir} holds no log {', '.join(absent)}", param_hint="TOPIC-PARTITION")
    rows = [{"log": name, **check_log(files, os.path.join(data_dir, name))._asdict()} for name in names]
    if as_json:
        say_json(rows)
    else:
        _show(False, rows, ("log", "segments", "batches", "records", "size_bytes", "first_offset", "end_offset"))
        for row in rows:
            for what in row["damage"]:
                click.echo(f"{row['log']}: damaged: {what}", err=True)
            for what in row["remarks"]:
                click.echo(f"{row['log']}: {what}", err=True)
    if any(row["damage"] for row in rows):
        raise SystemExit(1)
