"""The commands that control a running broker by its endpoint: `clock ...`, `broker ...`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import click

from momus.cli.control_place import Endpoint
from momus.cli.control_place import endpoint as _endpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from momus.control import Control

UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _connect(address: Endpoint) -> Control:
    """Errors: ClickException: there is no such broker."""
    from momus.control import ControlError

    try:
        return address.connect()
    except ControlError as error:
        raise click.ClickException(str(error)) from None


def _do(work: Callable[[], object]) -> None:
    from momus.control import ControlError

    try:
        work()
    except ControlError as error:
        raise click.ClickException(str(error)) from None


def _duration(text: str) -> timedelta:
    """90s, 8d, 1h30m, 250ms."""
    found = re.findall(r"(\d+)(ms|s|m|h|d)", text)
    if not found or "".join(number + unit for number, unit in found) != text:
        raise click.BadParameter(f"{text!r} is not a duration such as 90s, 8d, 1h30m or 250ms", param_hint="DURATION")
    try:
        return sum((timedelta(**{UNITS[unit]: int(number)}) for number, unit in found), timedelta())
    except OverflowError:
        raise click.BadParameter(f"{text} is too long", param_hint="DURATION") from None


@click.group()
def clock() -> None:
    """Show the time of a broker, and move it."""


@clock.command("show")
@_endpoint
def clock_show(address: Endpoint) -> None:
    """Show what time it is for the broker."""
    control = _connect(address)
    click.echo(f"{control.clock.now().isoformat()}{', standing' if control.clock.stands() else ''}")


@clock.command("advance")
@click.argument("duration")
@_endpoint
def clock_advance(duration: str, address: Endpoint) -> None:
    """Let time pass: 90s, 8d, 1h30m, 250ms."""
    control = _connect(address)
    _do(lambda: control.clock.advance(_duration(duration)))
    click.echo(control.clock.now().isoformat())


@clock.command("set")
@click.argument("moment", metavar="ISO-TIME")
@_endpoint
def clock_set(moment: str, address: Endpoint) -> None:
    """Go to a moment, 2030-01-01T00:00Z say, and stand there."""
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        raise click.BadParameter(f"{moment!r} is not a time such as 2030-01-01T00:00Z", param_hint="ISO-TIME") from None
    control = _connect(address)
    _do(lambda: control.clock.set(at))
    click.echo(control.clock.now().isoformat())


@clock.command("freeze")
@_endpoint
def clock_freeze(address: Endpoint) -> None:
    """Let a clock stand still; advance moves it on, resume lets it run."""
    control = _connect(address)
    _do(control.clock.freeze)
    click.echo(control.clock.now().isoformat())


@clock.command("resume")
@_endpoint
def clock_resume(address: Endpoint) -> None:
    """Let a clock that stands run on."""
    control = _connect(address)
    _do(control.clock.resume)
    click.echo(control.clock.now().isoformat())


@click.group()
def broker() -> None:
    """List virtual brokers; stop, start, lag and pause them."""


@broker.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@_endpoint
def broker_list(as_json: bool, address: Endpoint) -> None:
    """List the virtual brokers."""
    found = _connect(address).brokers()
    if as_json:
        import json  # 1 ms

        click.echo(json.dumps(found, indent=2))
        return
    for each in found:
        listeners = each["listeners"]
        assert isinstance(listeners, dict)
        state = "paused" if each["paused"] else "lags" if each["lags"] else "up" if each["up"] else "stopped"
        if each["paused"] and not each["up"]:
            state = "paused, its session has ended"
        click.echo(f"{each['id']}  {state}  {','.join(listeners.values())}")


@broker.command("stop")
@click.argument("node_id", type=int)
@_endpoint
def broker_stop(node_id: int, address: Endpoint) -> None:
    """Stop a virtual broker; the others lead what it led."""
    _do(lambda: _connect(address).stop_broker(node_id))
    click.echo(f"stopped {node_id}")


@broker.command("start")
@click.argument("node_id", type=int)
@_endpoint
def broker_start(node_id: int, address: Endpoint) -> None:
    """Start it again."""
    _do(lambda: _connect(address).start_broker(node_id))
    click.echo(f"started {node_id}")


@broker.command("lag")
@click.argument("node_id", type=int)
@_endpoint
def broker_lag(node_id: int, address: Endpoint) -> None:
    """Let a virtual broker fetch nothing of what others lead."""
    _do(lambda: _connect(address).lag_follower(node_id))
    click.echo(f"{node_id} lags")


@broker.command("release")
@click.argument("node_id", type=int)
@_endpoint
def broker_release(node_id: int, address: Endpoint) -> None:
    """Let it catch up."""
    _do(lambda: _connect(address).release_follower(node_id))
    click.echo(f"{node_id} follows")


@broker.command("pause")
@click.argument("node_id", type=int)
@_endpoint
def broker_pause(node_id: int, address: Endpoint) -> None:
    """Let a virtual broker read and answer nothing, with its connections open."""
    _do(lambda: _connect(address).pause_broker(node_id))
    click.echo(f"{node_id} is paused")


@broker.command("resume")
@click.argument("node_id", type=int)
@_endpoint
def broker_resume(node_id: int, address: Endpoint) -> None:
    """Let it go on."""
    _do(lambda: _connect(address).resume_broker(node_id))
    click.echo(f"{node_id} goes on")
