"""The command that shows a broker's requests as they come: `tail`."""

from __future__ import annotations

import json
import time

import click

from momus.cli.control_commands import _connect, _do
from momus.cli.control_place import Endpoint
from momus.cli.control_place import endpoint as _endpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOOK_AGAIN_S = 0.2
MADE_ROOM = "(requests had to make room before they could be shown: keep more with momus serve --journal MB)"
COLOURS = {"error": "red", "why": "yellow"}


@click.command()
@click.option("--api", help="Only requests of this API.")
@click.option("--client", "client_id", help="Only those of this client; *, ? and [...] fit anything.")
@click.option("--group", help="Only those that name this group.")
@click.option("--topic", help="Only those that name this topic.")
@click.option("--txn", "transactional_id", help="Only those that name this transactional id.")
@click.option("--error", help="Only those answered with this error, such as NOT_COORDINATOR.")
@click.option(
    "-n", "last", type=click.IntRange(0, 10_000), default=10, show_default=True, help="Begin with the last N."
)
@click.option("--once", is_flag=True, help="Show these and end.")
@click.option("--json", "as_json", is_flag=True, help="A JSON document each, decoded, in place of a line.")
@_endpoint
def tail(last: int, once: bool, as_json: bool, address: Endpoint, **words: str | None) -> None:
    """Show requests and replies as they come. Turns the journal on if it is off.

    A request is shown when it is answered: time, API, latency, client, what it names, errors, and why it was refused.
    """
    from momus.journal import Journal

    filters = {key: value for key, value in words.items() if value is not None}
    control = _connect(address)
    journal = Journal(control)
    state = control.ask("GET", "/_admin/journal?limit=1")
    assert isinstance(state, dict)
    if not state["bytes"]:
        journal.keep()
    _do(lambda: _show(journal, filters, last, once=once, as_json=as_json))


def _show(journal: Any, filters: dict[str, str], last: int, *, once: bool, as_json: bool) -> None:
    seen, entries = journal.newest(**filters)
    _print(entries[len(entries) - min(last, len(entries)) :], as_json)
    while not once:
        time.sleep(LOOK_AGAIN_S)
        seen, entries, is_cut = journal.look(seen, **filters)
        if is_cut:
            click.echo(MADE_ROOM, err=True)
        _print(entries, as_json)


def _print(entries: list[dict[str, Any]], as_json: bool) -> None:
    from momus.journal import one_line

    for each in entries:
        if as_json:
            click.echo(json.dumps(each))
        else:
            colour = COLOURS["error"] if each["errors"] else COLOURS["why"] if "fault" in each else None
            click.echo(click.style(one_line(each), fg=colour))
