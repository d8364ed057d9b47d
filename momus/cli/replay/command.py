"""The command that plays a failed run again: `replay`."""

from __future__ import annotations

import json

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from momus.cli.replay.bundle import Bundle


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--against", metavar="HOST:PORT[,...]", help="A broker that runs, of any make.  [default: a momus of its own]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def replay(file: str, against: str | None, as_json: bool) -> None:
    """Play a run that the pytest plugin has kept (--momus-keep-failed), and name the first answer that differs.

    A recording of `momus proxy` is played to its end on a fresh momus: how many answers were the same, different or
    undecided. Otherwise a momus begins with the data, settings, seed and time of the run. Any other broker begins as it
    is, and its clock and faults are its own. Ids of members, producers, topics and sessions may differ. Ends with 1 if
    an answer differs.
    """
    from momus.cli.replay.bundle import Bundle, BundleError
    from momus.cli.replay.checks import told
    from momus.control import ControlError
    from momus.kit.process import BrokerError

    try:
        bundle = Bundle(file)
        with told(file, "cannot be played"):
            _play(bundle, against, as_json)
    except (BundleError, BrokerError, ControlError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _play(bundle: Bundle, against: str | None, as_json: bool) -> None:
    from momus.cli.replay.player import Player
    from momus.cli.replay.targets import Momus, Other

    about = bundle.about
    if about.get("upstream") and against is None:
        from momus.cli.replay.compare_command import judged, tell  # 1 ms: of a proxy's recording alone

        judge = judged(bundle)
        if as_json:
            shown = [{**each._asdict(), "sentence": each.sentence()} for each in judge.different]
            told = {"requests": judge.requests, "same": judge.same, "different": shown, "notes": judge.notes}
            click.echo(json.dumps({**told, "known": judge.known, "undecided": judge.undecided}, indent=2, default=repr))
        else:
            tell(judge, "", None, None)
        raise SystemExit(int(bool(judge.different)))
    with Momus(bundle) if against is None else Other(against, about["node_ids"]) as target:
        player = Player(target)
        found = player.play(bundle.events())
    if as_json:
        told = {"requests": player.requests, "compared": player.answers, "notes": player.notes}
        difference = None if found is None else {**found._asdict(), "sentence": found.sentence()}
        click.echo(json.dumps({**told, "difference": difference}, indent=2, default=repr))
    else:
        for note in player.notes:
            click.echo(note, err=True)
        same = f"{player.requests} requests, {player.answers} answers compared: no difference"
        click.echo(same if found is None else found.sentence())
    if found is not None:
        raise SystemExit(1)
