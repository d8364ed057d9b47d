"""`momus explore`: a program runs once for each thing that a cluster may do to it, and is killed at its requests."""

from __future__ import annotations

import os
import sys

import click

from momus.cli.say import say
from momus.kit.plugin_options import DEFAULT_BUDGET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from momus.explore.findings import Explored, Run
    from momus.explore.program import Asked

MOST_WORKERS = 8


@click.command(context_settings={"ignore_unknown_options": False})
@click.option("--load", metavar="FILE", help="Fill the cluster with this before each run (docs/load.md).")
@click.option(
    "--check", metavar="COMMAND", help="Run by the shell after the program; another code than 0 is a finding."
)
@click.option("--brokers", type=click.IntRange(1, 100), default=1, show_default=True, help="Virtual brokers.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A broker setting; repeatable.")
@click.option(
    "--budget", metavar="60s|200|all", default=DEFAULT_BUDGET, show_default=True, help="How long, or how many runs."
)
@click.option(
    "--what",
    metavar="WORDS",
    default="",
    help="Of errors, connection, group, broker, transaction, records, program, fatal; all but the last.",
)
@click.option("--restart", is_flag=True, help="Start the program again when it ends with another code than 0.")
@click.option("--schedule", metavar="TEXT", help="Run it once, with this one.")
@click.option("--test", metavar="NAME", help="With --schedule: the test of a suite in which it happens.")
@click.option("--seed", type=int, default=0, help="Of the order of schedules and of pairs.")
@click.option("--workers", type=click.IntRange(1, 64), help="So many at once.  [default: one a processor]")
@click.option("--report", metavar="FILE", help="Write what was found there: .json, .md, .xml or .html.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def explore(
    load: str | None,
    check: str | None,
    brokers: int,
    assignments: tuple[str, ...],
    budget: str,
    what: str,
    restart: bool,
    schedule: str | None,
    test: str | None,
    seed: int,
    workers: int | None,
    report: str | None,
    command: tuple[str, ...],
) -> None:
    """Run a program once for each thing that a cluster may do to it: momus explore -- python bill.py

    It has a cluster of its own each time, whose address is in KAFKA_BOOTSTRAP_SERVERS and in the place of {servers}
    among its words. It must end by itself, with 0. It is killed (kill -9) at its requests too, and started again until
    it ends with 0. A suite of Go, the JVM or Node whose tests make their clusters by momus' kit is known by its first
    run: then something happens in each test, by a schedule of its own: momus explore -- go test ./...
    Exit codes: 0 nothing was found, 1 something was, or it fails without it, 2 bad usage.
    """
    from momus.explore import kit_suite, program  # 60 ms, with http.server
    from momus.explore.findings import WRONG
    from momus.explore.happenings import of_a_program
    from momus.explore.plan import Budget
    from momus.explore.schedule import parse, text_of

    try:
        settings = dict(each.split("=", 1) for each in assignments)
    except ValueError:
        raise click.UsageError("--set takes KEY=VALUE") from None
    if test is not None and schedule is None:
        raise click.UsageError("--test says in which test a --schedule happens: give one")
    count = workers or max(1, min(MOST_WORKERS, os.cpu_count() or 1))
    try:
        asked = program.Asked(
            command, check, load, brokers, settings, of_a_program(what), Budget.of(budget), seed, count, restart
        )
        parsed = None if schedule is None else parse(schedule)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    try:
        if parsed is not None:
            run = program.once(asked, parsed) if test is None else kit_suite.once(asked, test, parsed)
            say(f"{run.verdict}: {text_of(parsed)}")
            say_text(run.why)
            raise SystemExit(1 if run.verdict in WRONG else 0)
        try:
            told = [program.explore(asked, show)]
        except program.IsSuiteError:
            told = kit_suite.explore(_as_suite(asked), show)
    except (program.ProgramError, RuntimeError, OSError) as error:
        raise click.ClickException(str(error)) from None
    say_all(told, report)
    raise SystemExit(1 if any(each.wrong for each in told) else 0)


def say_all(told: list[Explored], report: str | None) -> None:
    """Print what was found, and write it into a file if there is to be one."""
    from momus.explore.report import write_report  # 3 ms: imported already

    if sys.stderr.isatty():
        click.echo("\r\033[K", nl=False, err=True)
    for each in told:
        say_found(each)
    if report is not None:
        write_report(report, told)
        say(f"written to {report}")


def _as_suite(asked: Asked) -> Asked:
    """What is asked of a suite. Errors: UsageError: an option is for a program alone."""
    given = {
        "--load": asked.load is not None,
        "--check": asked.check is not None,
        "--brokers": asked.brokers != 1,
        "--set": bool(asked.config),
        "--restart": asked.restarts,
    }
    if words := ", ".join(option for option, is_given in given.items() if is_given):
        raise click.UsageError(f"{words}: not for a suite, whose tests make their own clusters and say what is wrong")
    return asked


def say_found(told: Explored) -> None:
    """Print what was found."""
    from momus.explore.report import failure_text, table  # 3 ms: imported already

    if told.note:
        say(f"{told.test}: not explored: {told.note}")
        return
    say(told.head)
    for line in table(told):
        say(line)
    for line in failure_text(told).splitlines() if told.wrong else ():
        say(line)


def say_text(text: str) -> None:
    """Print a text of several lines, set in."""
    for line in text.splitlines():
        say(f"  | {line}")


def show(runs: list[Run], planned: int) -> None:
    """How far it is, on a terminal."""
    if sys.stderr.isatty():
        wrong = sum(run.is_wrong for run in runs)
        click.echo(f"\r\033[K{len(runs)} of {planned} schedules, {wrong} found", nl=False, err=True)
