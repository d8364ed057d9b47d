"""`momus compare`: does a program meet the same answers on momus as on its own cluster?"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from momus.cli.connect_options import client_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from momus.cli.replay.bundle import Bundle
    from momus.cli.replay.judge import Judge

VARIABLES = ("MOMUS_BOOTSTRAP_SERVERS", "BOOTSTRAP_SERVERS", "KAFKA_BOOTSTRAP_SERVERS")
PLACE = "{servers}"


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--to", metavar="HOST:PORT[,...]", required=True, help="The cluster: the command runs on it, by a proxy.")
@click.option("--record", type=click.Path(dir_okay=False), help="Keep the recording there.")
@click.option("--markdown", type=click.Path(dir_okay=False), help="Write the result there, as Markdown.")
@click.option("--junit", type=click.Path(dir_okay=False), help="Write the result there, as JUnit XML.")
@client_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def compare(to: str, record: str | None, markdown: str | None, junit: str | None, command: tuple[str, ...]) -> None:
    """Run COMMAND on a cluster, through a proxy that records, then play what passed on a fresh momus.

    The command finds the proxy by BOOTSTRAP_SERVERS, KAFKA_BOOTSTRAP_SERVERS or MOMUS_BOOTSTRAP_SERVERS, and where
    {servers} stands in its words. Topics should be its own: momus begins without records. Ends with 1 if an answer
    differs, and with the command's own code if that is not 0.
    """
    from momus.cli.replay.bundle import Bundle, BundleError
    from momus.control import ControlError
    from momus.kit.process import BrokerError

    with tempfile.TemporaryDirectory(prefix="momus-compare-") as folder:
        path = os.path.abspath(record or os.path.join(folder, "run.momus"))
        try:
            code = _run(to, path, command)
            judge = judged(Bundle(path))
        except (BundleError, BrokerError, ControlError) as error:
            raise click.ClickException(str(error)) from None
    tell(judge, " ".join(command), markdown, junit)
    raise SystemExit(code or int(bool(judge.different)))


def _run(to: str, path: str, command: tuple[str, ...]) -> int:
    """Run the command through a proxy that records. Returns its exit code. Errors: BrokerError."""
    from momus import Broker
    from momus.client.connect_settings import SETTINGS

    proxy = Broker(upstream=to, upstream_config=SETTINGS)
    proxy.record_file, proxy.verifies = path, False
    with proxy:
        servers = proxy.bootstrap_servers
        environment = {**os.environ, **dict.fromkeys(VARIABLES, servers)}
        words = [word.replace(PLACE, servers) for word in command]
        try:
            code = subprocess.run(words, env=environment).returncode
        except OSError as error:
            raise click.ClickException(f"{words[0]}: {error.strerror}") from None
        proxy.stop()
        if not Path(path).exists():
            raise click.ClickException(f"nothing was recorded\n{proxy.log}")
    return code


def judged(bundle: Bundle) -> Judge:
    """A recording of another cluster, played to its end on a fresh momus. Errors: BrokerError, ControlError."""
    from momus.cli.replay.judge import Judge
    from momus.cli.replay.targets import Fresh

    with Fresh(bundle) as target:
        judge = Judge(target)
        judge.judge(bundle.events())
    return judge


def tell(judge: Judge, what: str, markdown: str | None, junit: str | None) -> None:
    """Print the result, and write it where that is asked for."""
    from momus.cli.replay import judge as judging

    click.echo(judge.summary())
    for found in judge.different[: judging.MOST_SHOWN]:
        click.echo(f"  {found.sentence()}")
    for name, count in judge.known.most_common():
        click.echo(f"  known departure (SUPPORTED.md): {count}, {name}")
    for rule, count in judge.undecided.most_common():
        click.echo(f"  undecided: {count}, {rule}")
    for note in judge.notes:
        click.echo(note, file=sys.stderr)
    if markdown:
        Path(markdown).write_text(judging.report(judge, what), encoding="utf-8")
    if junit:
        Path(junit).write_text(judging.junit(judge, what), encoding="utf-8")
