"""The commands that open a kept run to look at it: `open`, and `step`, which plays it forward."""

from __future__ import annotations

import re
import signal

import click

from momus.cli.control_place import Endpoint, endpoint
from momus.cli.say import say, say_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from momus.cli.replay.opened import Opened
    from momus.cli.replay.targets import Momus

LOCAL = re.compile(r"(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?):\d{1,5}")


@click.command("open")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--until", type=click.IntRange(0), metavar="N", help="Play the first N requests.  [default: all]")
@click.option("--at", metavar="TIME", help="Play what happened until then: 2030-01-01T00:00Z or Unix milliseconds.")
@click.option("--listen", default="127.0.0.1:0", show_default=True, metavar="HOST:PORT", help="Where clients find it.")
@click.option("--control", default="127.0.0.1:0", show_default=True, metavar="HOST:PORT", help="Its control endpoint.")
@click.option("--ui", is_flag=True, help="Print a link to the page, with the journal of the run.")
def open_(file: str, until: int | None, at: str | None, listen: str, control: str, ui: bool) -> None:
    """Start the cluster of a kept run as it was then, and stay until SIGTERM or SIGINT; its clock stands.

    `momus step --control HOST:PORT` plays the next request, as `POST /_admin/step` and the page's button do. Answers
    that differ from the recorded ones are named.
    """
    if until is not None and at is not None:
        raise click.UsageError("give --until or --at, not both")
    if not LOCAL.fullmatch(control):
        raise click.BadParameter("it is no loopback HOST:PORT: whoever reaches it may do all", param_hint="--control")
    from momus.cli.records.places import PlaceError, moment_ms
    from momus.cli.replay.bundle import Bundle, BundleError
    from momus.cli.replay.checks import told
    from momus.cli.replay.opened import Opened
    from momus.cli.replay.targets import Momus
    from momus.control import BrokerDiedError, ControlError
    from momus.kit.process import BrokerError

    signal.signal(signal.SIGTERM, _end)
    try:
        at_ms = None if at is None else moment_ms(at)
        bundle = Bundle(file)
        played = told(file, "cannot be played")
        with played, Momus(bundle, listen=listen, control=control, is_shown=True) as target:
            opened = Opened(bundle, target)
            _go(opened, until, at_ms)
            _say_where(opened, target, ui)
            _stay(opened, target)
    except PlaceError as error:
        raise click.BadParameter(str(error), param_hint="--at") from None
    except KeyboardInterrupt:
        return
    except (BundleError, BrokerError, BrokerDiedError, ControlError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _end(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _go(opened: Opened, until: int | None, at_ms: int | None) -> None:
    if at_ms is not None:
        opened.go_to(at_ms)
    elif until != 0:
        opened.step(opened.requests + 1 if until is None else until)


def _say_where(opened: Opened, target: Momus, ui: bool) -> None:
    told = opened.where(is_step=False)
    _say_news(told)
    target.tell(told)
    click.echo(f"momus ready {target.bootstrap_servers}")
    click.echo(f"momus control {target.control_address}")
    if ui:
        click.echo(f"momus ui http://{target.control_address}/ui#/{target.name}/journal")
    say(opened.sentence())


def _say_news(told: dict[str, Any]) -> None:
    for note in (*told["notes"], *told["differences"]):
        say(note, err=True)


def _stay(opened: Opened, target: Momus) -> None:
    """Play what is asked for, until a signal comes or the broker ends. Errors: BrokerDiedError, ControlError."""
    while True:
        requests = target.next_step()
        if requests:
            opened.step(requests)
            told = opened.where(is_step=True)
            target.tell(told)
            _say_news(told)
            say(opened.sentence())


@click.command()
@click.argument("requests", type=click.IntRange(1), default=1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@endpoint
def step(requests: int, as_json: bool, address: Endpoint) -> None:
    """Play the next request, or so many, of the run that `momus open` has opened there.

    Ends with 1 if an answer differs from the recorded one, which is named.
    """
    from momus.control import ControlError

    try:
        told: Any = address.connect().ask("POST", "/_admin/step", {"requests": requests})
    except ControlError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        say_json(told)
    else:
        for note in (*told["notes"], *told["differences"]):
            say(note)
        end = ", the last" if told["ended"] else ""
        say(f"request {told['request']} of {told['requests']}{end}: {told['last']}")
    if told["differences"]:
        raise SystemExit(1)
