"""The commands `momus group seek` and `momus group delete`, beside those of momus.cli.commands."""

from __future__ import annotations

import time

import click

from momus.cli.commands import _bootstrap, _json, _names, _report, _table, group
from momus.cli.say import say, say_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

    from momus.cli.groups.client import GroupClient
    from momus.cli.groups.reset import Reset

__all__ = ["group"]

COLUMNS = ("group", "topic", "partition", "committed", "offset", "remark")


def _connect(bootstrap: str, timeout_s: float) -> GroupClient:
    from momus.cli.groups.client import GroupClient

    return GroupClient(bootstrap, timeout_s=timeout_s)


@group.command("seek")
@click.argument("names", nargs=-1, metavar="[GROUP]...")
@click.option("-g", "--group", "more", multiple=True, metavar="GROUP", help="Same as an argument.")
@click.option("--all-groups", is_flag=True, help="All groups without members.")
@click.option("-t", "--topic", "topics", multiple=True, metavar="TOPIC[:0,1]", help="Which partitions; repeatable.")
@click.option("--all-topics", is_flag=True, help="All that the group has committed.")
@click.option("--to-earliest", is_flag=True, help="To the first offset.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-current", is_flag=True, help="Where it is; to the end where nothing is committed.")
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="To this offset.")
@click.option("--shift-by", type=int, metavar="N", help="So many records on; -N: back.")
@click.option("--by-duration", metavar="P7D", help="To the first record that is not older than so long: PnDTnHnMnS.")
@click.option(
    "--to-datetime", metavar="TIME", help="To the first record of that time or later: 2030-01-01T00:00:00.000"
)
@click.option(
    "--from-file",
    type=click.File(encoding="utf-8"),
    help="To the offsets of a CSV: topic,partition,offset, or group,topic,partition,offset. --export writes one.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be committed, and commit nothing.")
@click.option("--execute", is_flag=True, help="Commit. This is the default.")
@click.option("--export", is_flag=True, help="Print a CSV for --from-file in place of a table.")
@_json
@_bootstrap
def group_seek(
    names: tuple[str, ...],
    more: tuple[str, ...],
    all_groups: bool,
    topics: tuple[str, ...],
    all_topics: bool,
    dry_run: bool,
    execute: bool,
    export: bool,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
    **words: Any,
) -> None:
    """Move what a group has committed, with the words of kafka-consumer-groups.

    The group must have no members. Exit code 1: it has, or an offset was refused.
    """
    from momus.cli.groups.reset import ResetError, parse_scope

    if dry_run and execute:
        raise click.UsageError("--dry-run or --execute, not both")
    if all_groups and (names or more):
        raise click.UsageError("name groups, or say --all-groups")
    chosen = [] if all_groups else list(dict.fromkeys(_names(names, more, "group")))
    try:
        reset = _reset(words, chosen[0] if len(chosen) == 1 else None)
        scope = None if all_topics else [parse_scope(each) for each in topics]
    except ResetError as error:
        raise click.UsageError(str(error)) from None
    if reset.offsets is None and not all_topics and not topics:
        raise click.UsageError("which partitions? --topic TOPIC[:0,1] or --all-topics")
    if all_topics and topics:
        raise click.UsageError("--topic or --all-topics, not both")
    with _connect(bootstrap, timeout_s) as client:
        states = client.states()
        if all_groups:
            chosen = [each for each, state in states.items() if state == "Empty"]
        rows: list[dict[str, object]] = []
        try:
            for each in chosen:
                rows += client.plan(each, reset, scope, states.get(each))
        except ResetError as error:
            raise click.ClickException(str(error)) from None
        refused = []
        for each in chosen if not dry_run else []:
            refused += [{"group": each, **row} for row in client.seek(each, [r for r in rows if r["group"] == each])]
    _show_plan(rows, as_json, export, several=len(chosen) != 1)
    for row in refused:
        click.echo(f"{row['group']} {row['topic']}-{row['partition']}: {row['error']}", err=True)
    if refused:
        raise SystemExit(1)


def _reset(words: dict[str, Any], only_group: str | None) -> Reset:
    """The one reset that is asked for. Errors: ResetError, UsageError."""
    from momus.cli.groups.reset import Reset, parse_datetime, parse_duration, parse_file

    given = {key: value for key, value in words.items() if value is not None and value is not False}
    if len(given) != 1:
        told = ", ".join("--" + key.replace("_", "-") for key in (given or words))
        raise click.UsageError(f"one reset, not {len(given)}: {told}" if given else f"where to? One of {told}")
    ((word, value),) = given.items()
    now_ms = time.time_ns() // 1_000_000
    if word == "from_file":
        file: IO[str] = value
        return Reset("file", offsets=parse_file(file.read().splitlines(), only_group))
    if word == "by_duration":
        return Reset("time", max(now_ms - parse_duration(value), 0))  # negative numbers are words of ListOffsets
    if word == "to_datetime":
        return Reset("time", max(parse_datetime(value), 0))
    if word in ("to_offset", "shift_by"):
        return Reset(word.removeprefix("to_").removesuffix("_by"), value)
    return Reset(word.removeprefix("to_"))


def _show_plan(rows: list[dict[str, object]], as_json: bool, export: bool, *, several: bool) -> None:
    if as_json:
        say_json(rows)
    elif export:
        columns = ("group", "topic", "partition", "offset") if several else ("topic", "partition", "offset")
        for row in rows:
            say(",".join(str(row[column]) for column in columns))
    else:
        _table(rows, COLUMNS)


@group.command("delete")
@click.argument("names", nargs=-1, metavar="[GROUP]...")
@click.option("-g", "--group", "more", multiple=True, metavar="GROUP", help="Same as an argument.")
@_json
@_bootstrap
def group_delete(
    names: tuple[str, ...], more: tuple[str, ...], as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """Delete groups and what they have committed. A group with members is refused: exit code 1."""
    wanted = _names(names, more, "group")
    with _connect(bootstrap, timeout_s) as client:
        results = client.delete_groups(wanted)
    _report(as_json, results, "deleted")
