"""Explores a program: it is run with a cluster of its own for each schedule, killed at requests too, and checked.

The program finds the cluster by its environment (VARIABLES), or by `{servers}` among its words. A run is good where the
program ends with 0 and the check, a command of its own, with 0 after it. Where it was killed it is started again until
it ends with 0.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from shlex import join
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from momus.cluster import Cluster
from momus.control import ControlError
from momus.explore import plan
from momus.explore.classes import find
from momus.explore.findings import FAILED, HUNG, LEFT, Explored, Run, verdict_of, with_left
from momus.explore.happenings import Happening
from momus.explore.kit_front import Front
from momus.explore.schedule import Schedule
from momus.explore.watch import PREFIX, Address, Watch, last_requests
from momus.kit.process import Broker
from momus.kit.words import quoted

if TYPE_CHECKING:
    from momus.kit.load_files import Loadable

VARIABLES = (
    "KAFKA_BOOTSTRAP_SERVERS",
    "BOOTSTRAP_SERVERS",
    "SPRING_KAFKA_BOOTSTRAP_SERVERS",
    "MOMUS_BOOTSTRAP_SERVERS",
)
PLACE = "{servers}"
MOST_LIVES = 20  # of a program that is started again
MOST_OUTPUT = 4000  # characters that are shown
LOOK_S = 0.005
EMPTY: Mapping[str, str] = MappingProxyType({})


class Asked(NamedTuple):
    """What is to be explored.

    command     the program and its words.
    check       a command that says whether its work is right; None: nothing asks.
    restarts    start it again when it ends with another code than 0, as a supervisor does.
    """

    command: Sequence[str]
    check: str | None
    load: Loadable | None
    brokers: int
    config: dict[str, str]
    happenings: Sequence[Happening]
    budget: plan.Budget
    seed: int
    workers: int
    restarts: bool

    def again(self, *words: str) -> str:
        """The command that runs it with one schedule, for which {} stands. `words`: further options."""
        options = [*words]
        if self.load is not None:
            options += ["--load", str(self.load)]
        if self.check is not None:
            options += ["--check", self.check]
        if self.brokers != 1:
            options += ["--brokers", str(self.brokers)]
        for name, value in self.config.items():
            options += ["--set", f"{name}={value}"]
        if self.restarts:
            options.append("--restart")
        return f"{join(['momus', 'explore', *options])} --schedule {{}} -- {join(self.command)}"


class Ended(NamedTuple):
    """How a run went. `code`: of the program, or of the check after it; None: it hung."""

    watch: Watch
    code: int | None
    seconds: float
    output: str
    where: list[str]


class ProgramError(RuntimeError):
    """It cannot be explored; the text says why."""


class IsSuiteError(RuntimeError):
    """Its clusters are made by a kit: it is a suite (kit_suite.py)."""


def explore(asked: Asked, show: Callable[[list[Run], int], None] = lambda runs, planned: None) -> Explored:
    """Explore a program. `show`: is told how far it is.

    Errors: ProgramError; IsSuiteError; ControlError: the load is refused.
    """
    began_s = time.monotonic()
    with ExitStack() as ends:
        own = ends.enter_context(host())
        template = own.create_cluster(brokers=asked.brokers, config=asked.config, load=asked.load, journal_mb=1)
        plains = []
        for _ in range(plan.PLAIN_RUNS):
            with Front(own.control.address, {}) as front:
                plains.append(_run(template, asked, None, plan.PLAIN_LIMIT_S, {"MOMUS_ADDRESS": front.address}))
                if front.tests or front.unnamed:
                    raise IsSuiteError
        for number, each in enumerate(plains):
            if each.code != 0:
                before = "" if not number else ", though it ended with 0 before"
                how = "did not end" if each.code is None else f"ended with {each.code}"
                raise ProgramError(f"without anything that happens it {how}{before}\n{each.output}".rstrip())
        rows, plain_s = plains[-1].watch.rows, max(each.seconds for each in plains)
        if not rows:
            raise ProgramError(
                f"it asked its cluster nothing: its address is in {', '.join(VARIABLES)}, and in {PLACE}"
            )
        found = find(rows, plains[0].watch.rows)
        schedules = plan.singles(found.requests, asked.happenings, asked.brokers, asked.seed)
        left = {sentence for each in plains for sentence in each.watch.left}
        runs = _run_all(template, asked, schedules, plan.hang_limit_s(plain_s), left, show)
        done = sum(len(run.schedule) == 1 for run in runs)
        name = " ".join(asked.command)
        seconds = time.monotonic() - began_s
        left_out = len(schedules) - done
        return Explored(name, "", found.classes, len(schedules), left_out, runs, seconds, plain_s, asked.again())


def host() -> Broker:
    """A momus for the clusters of runs; its own cluster serves none."""
    made = Broker(flush="memory")
    made.is_host = True
    return made


def once(asked: Asked, schedule: Schedule, limit_s: float = plan.PLAIN_LIMIT_S) -> Run:
    """Run it with one schedule. Errors: ControlError."""
    with host() as own:
        template = own.create_cluster(brokers=asked.brokers, config=asked.config, load=asked.load, journal_mb=1)
        return _judged(schedule, _run(template, asked, schedule, limit_s), set())


def _run_all(
    template: Cluster,
    asked: Asked,
    schedules: list[Schedule],
    limit_s: float,
    left: set[str],
    show: Callable[[list[Run], int], None],
) -> list[Run]:
    """Run schedules in threads until there are no more, or the budget is spent."""
    end_s = None if asked.budget.seconds is None else time.monotonic() + asked.budget.seconds
    queue = plan.queued(schedules, asked.budget, asked.seed)
    runs: list[Run] = []
    lock = threading.Lock()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while end_s is None or time.monotonic() < end_s:
                with lock:
                    schedule = next(queue, None)
                if schedule is None or errors:
                    return
                run = _judged(schedule, _run(template, asked, schedule, limit_s), left)
                if run.verdict == FAILED:
                    run = run._replace(again=_judged(schedule, _run(template, asked, schedule, limit_s), left).verdict)
                with lock:
                    runs.append(run)
                    show(runs, len(schedules))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, name=f"explore-{number}") for number in range(asked.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return runs


def _run(
    template: Cluster, asked: Asked, schedule: Schedule | None, limit_s: float, variables: Mapping[str, str] = EMPTY
) -> Ended:
    """Run it once, with a fork of the template. `variables`: further ones of its environment."""
    where: list[Address] = []
    watch = Watch(schedule, where.append)
    cluster = template.fork()
    try:
        watch.made(cluster)
        began_s = time.monotonic()
        code, output = _lives(cluster, asked, schedule, watch, began_s + limit_s, variables)
        seconds = time.monotonic() - began_s
        lines = last_requests(where[0]) if code is None and where else []
        watch.ends(cluster)
        return Ended(watch, code, seconds, output, lines)
    finally:
        cluster.close()


def _lives(
    cluster: Cluster,
    asked: Asked,
    schedule: Schedule | None,
    watch: Watch,
    end_s: float,
    variables: Mapping[str, str],
) -> tuple[int | None, str]:
    """Let the program live until it ends with 0, and check it. Returns the code, None: it hung, and its output."""
    environment = {**os.environ, **variables, **dict.fromkeys(VARIABLES, cluster.bootstrap_servers)}
    words = [word.replace(PLACE, cluster.bootstrap_servers) for word in asked.command]
    kills = [f"{PREFIX}{index}" for index, step in enumerate(schedule or ()) if step.kind == "kill_program"]
    with tempfile.TemporaryFile() as output:
        for _ in range(MOST_LIVES):
            code, was_killed = _life(words, environment, output, cluster, kills, end_s)
            if code is None or code == 0 or not (was_killed or asked.restarts):
                break
        if code == 0 and asked.check is not None:
            checked = asked.check.replace(PLACE, cluster.bootstrap_servers)
            code = _life(["/bin/sh", "-c", checked], environment, output, cluster, [], end_s)[0]
        output.seek(0)
        return code, output.read()[-MOST_OUTPUT:].decode(errors="replace")


def _life(
    words: Sequence[str],
    environment: dict[str, str],
    output: Any,
    cluster: Cluster,
    kills: list[str],
    end_s: float,
) -> tuple[int | None, bool]:
    """Run a command until it ends, or is killed at a request of `kills`, which is taken out, or at the limit.

    Returns its code, None: it hung; and whether it was killed at a request.
    """
    process = begin(words, environment, output)
    while True:
        try:
            return process.wait(LOOK_S if kills else max(0.0, end_s - time.monotonic())), False
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end_s:
                end_process(process)
                return None, False
        for name in list(kills):
            if _is_held(cluster, name):
                end_process(process)
                kills.remove(name)
                with suppress(ControlError):
                    cluster._ask("POST", f"/faults/{name}/release", {})
                _forget_members(cluster)
                return -signal.SIGKILL, True


def _forget_members(cluster: Cluster) -> None:
    """The members of a program that was killed leave their groups, as after their sessions: it begins again then."""
    for group in cluster._ask("GET", "/groups")["groups"]:
        told = cluster._ask("GET", f"/groups/{quoted(group['group'])}")
        for member in told["members"]:
            with suppress(ControlError):  # it has just left
                cluster.expel_member(group["group"], member)


def _is_held(cluster: Cluster, name: str) -> bool:
    try:
        return bool(cluster._ask("GET", f"/faults/{name}")["held"])
    except ControlError:  # a restart has taken it away
        return False


def begin(words: Sequence[str], environment: dict[str, str], output: Any) -> subprocess.Popen[bytes]:
    """Start a command. Errors: ProgramError: it cannot be started."""
    try:
        return subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    except OSError as error:
        raise ProgramError(f"{words[0]} cannot be started: {error.strerror}") from None


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a command, and whatever it has started."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _judged(schedule: Schedule, ended: Ended, left: set[str]) -> Run:
    watch, new = ended.watch, sorted(set(ended.watch.left) - left)
    if ended.code is None:
        return Run(schedule, HUNG, ended.seconds, "\n".join(["the last requests:", *ended.where, ended.output]))
    verdict = verdict_of(schedule, failed=ended.code != 0, hits=watch.hits, outcomes=watch.outcomes, left=new)
    why = f"it ended with {ended.code}\n{ended.output}".rstrip() if ended.code else ""
    if verdict in (FAILED, LEFT) and new:
        why = with_left(why, new)
    return Run(schedule, verdict, ended.seconds, why or "; ".join(filter(None, watch.outcomes)))
