"""The commands that set and remove the faults of a running broker: `fault ...`."""

from __future__ import annotations

import json

import click

from momus.cli.control_commands import _connect, _do
from momus.cli.control_place import Endpoint
from momus.cli.control_place import endpoint as _endpoint
from momus.cli.say import say, say_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

TRIGGERS = ("on_call", "times", "with_probability", "seed")


@click.group()
def fault() -> None:
    """Let things go wrong for the clients of a broker: errors, delays, holds, cut connections, a failing disk."""


@fault.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@_endpoint
def fault_list(as_json: bool, address: Endpoint) -> None:
    """List the faults that are set, with how often each was met and has acted."""
    from momus.faults import Faults

    found = Faults(_connect(address)).list()
    if as_json:
        say_json(found)
        return
    for each in found:
        counts = f"met {each.pop('calls')} times, acted {each.pop('hits')}, keeps {each.pop('held')}"
        name, kind = each.pop("name"), each.pop("fault")
        say(f"{name}  {kind}  {' '.join(f'{key}={value}' for key, value in each.items())}  {counts}")


@fault.command("set")
@click.argument("kind", metavar="FAULT")
@click.argument("words", nargs=-1, metavar="KEY=VALUE...")
@_endpoint
def fault_set(kind: str, words: tuple[str, ...], address: Endpoint) -> None:
    """Set a fault, which acts from the next request on.

    momus fault set inject_error api=OffsetCommit error=NOT_COORDINATOR group=billing trigger=once

    A trigger is trigger=once, trigger=every_time, on_call=N, times=N, or with_probability=P seed=S.
    """
    from momus.faults import Faults

    faults = Faults(_connect(address))
    given = parse_words(words)
    _do(lambda: click.echo(faults.add(fault=kind, **given).name))


@fault.command("load")
@click.argument("file", type=click.File(encoding="utf-8"))
@_endpoint
def fault_load(file: IO[str], address: Endpoint) -> None:
    """Set the faults of a JSON file: a list of objects."""
    from momus.faults import Faults

    faults, wanted = Faults(_connect(address)), read_faults(file)
    _do(lambda: click.echo("\n".join(each.name for each in faults.load(wanted))))


@fault.command("release")
@click.argument("name")
@click.option("--most", type=click.IntRange(1), help="So many, the oldest first.  [default: all]")
@_endpoint
def fault_release(name: str, most: int | None, address: Endpoint) -> None:
    """Let go what a fault keeps."""
    from momus.faults import Fault

    kept = Fault(_connect(address), "/_admin", name)
    _do(lambda: click.echo(f"released {kept.release(most)}"))


@fault.command("remove")
@click.argument("name")
@_endpoint
def fault_remove(name: str, address: Endpoint) -> None:
    """Remove a fault; what it keeps goes on."""
    from momus.faults import Fault

    _do(Fault(_connect(address), "/_admin", name).remove)
    click.echo(f"removed {name}")


@fault.command("clear")
@_endpoint
def fault_clear(address: Endpoint) -> None:
    """Remove all faults; what they keep goes on."""
    from momus.faults import Faults

    _do(Faults(_connect(address)).clear)
    click.echo("removed all")


def parse_words(words: tuple[str, ...]) -> dict[str, Any]:
    """KEY=VALUE words as the JSON object of a fault has them. Errors: BadParameter."""
    from broker.faults.kinds import KINDS

    types = {field.name: field.type for kind in KINDS.values() for field in (*kind.fields, *kind.filters)}
    given: dict[str, Any] = {}
    trigger: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise click.BadParameter(f"{word!r} is not KEY=VALUE")
        try:
            if key in TRIGGERS:
                trigger[key] = float(value) if key == "with_probability" else int(value)
            elif types.get(key) == "version" and "-" in value:
                given[key] = [int(end) for end in value.split("-", 1)]
            elif types.get(key) in ("number", "version"):
                given[key] = int(value)
            else:
                given[key] = value.split(",") if types.get(key) == "api" else value
        except ValueError:
            raise click.BadParameter(f"{word!r}: {key} takes a number") from None
    if trigger:
        given["trigger"] = trigger
    return given


def read_faults(file: IO[str]) -> list[dict[str, Any]]:
    """The faults of a JSON file. Errors: BadParameter."""
    try:
        wanted = json.load(file)
    except ValueError as error:
        raise click.BadParameter(f"{file.name} is not JSON: {error}") from None
    if not isinstance(wanted, list) or not all(isinstance(each, dict) for each in wanted):
        raise click.BadParameter(f"{file.name} is not a list of objects")
    return wanted
