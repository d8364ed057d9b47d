"""The command that gives up what a damaged log holds from its first bad byte on: `repair`."""

from __future__ import annotations

import os

import click

from momus.cli.say import say


@click.command()
@click.option("-d", "--data-dir", default="./data", show_default=True, type=click.Path(exists=True, file_okay=False))
@click.option("--gaps", is_flag=True, help="A gap in the offsets is damage too: the logs were never compacted.")
@click.argument("logs", nargs=-1, required=True, metavar="TOPIC-PARTITION...")
def repair(data_dir: str, gaps: bool, logs: tuple[str, ...]) -> None:
    """Give up what damaged logs hold from their first bad byte on.

    For logs that a broker refuses to open and of which there is no copy. The broker must not be running. Says what was
    lost.
    """
    from storage.files import checkpoints
    from storage.files.env import system_env
    from storage.files.errors import LockedError
    from storage.log.repair import repair as repair_log

    absent = [name for name in logs if not os.path.isdir(os.path.join(data_dir, name))]
    if absent:
        raise click.BadParameter(f"{data_dir} holds no log {', '.join(absent)}", param_hint="TOPIC-PARTITION")
    env = system_env()
    try:
        lock = env.files.lock(f"{data_dir}/{checkpoints.LOCK}")
    except LockedError:
        raise click.ClickException(f"a broker is using {data_dir}: stop it first") from None
    try:
        for name in logs:
            report = repair_log(env, f"{data_dir}/{name}", may_have_gaps=not gaps)
            if report.dropped_bytes:
                say(f"{name}: gave up {report.dropped_bytes} bytes from {report.path} position {report.position} on")
            else:
                say(f"{name}: not damaged")
    finally:
        lock.release()
