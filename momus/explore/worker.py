"""A process in which tests are run again and again: a fork of pytest's own, so that it is warm, and can be ended when a
test hangs in it, with the test's threads, clients and clusters.

It is told in lines of JSON what to run, and answers in lines of JSON.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module

import pytest

from momus.explore.schedule import parse
from momus.explore.watch import Address, Watch
from momus.kit import explored
from momus.kit.verified import FAILED, KEPT, REPORT, RUN, SKIPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STACK_S = 1.0  # until a process that hangs has written where its threads are
MOST_STACK = 4000  # characters
# Imported before the first fork, so that no run pays for them. In one of 256 runs CPython 3.11 could not compile such a
# module in the fork either (SystemError of its AST constructor).
WARM = ("momus.aio", "momus.cluster", "momus.faults", "momus.journal", "momus.difference", "momus.kit.kept_run")


class Worker:
    """One such process, seen from outside."""

    def __init__(self, session: pytest.Session, inherited: list[Worker]) -> None:
        """Fork. `inherited`: the other workers, whose sockets the new one gives up."""
        self.clusters: list[Address] = []  # of the run that goes on
        self.began_s = 0.0
        self.limit_s = 0.0
        self.given: Any = None  # what it runs, as its owner knows it; None: nothing
        self._stacks = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the process
        for name in WARM:
            import_module(name)
        self.socket, other = socket.socketpair()
        self._lines = b""
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self.socket.close()
            for each in inherited:
                each.socket.close()
            _child(session, other, self._stacks)
        other.close()

    def run(self, item: int, schedule: str | None, limit_s: float, given: Any, *, keep: str = "") -> None:
        """Begin a run. `item`: its number among the session's; `limit_s`: how long it may take; `keep`: the folder for
        its file if it fails."""
        self.given, self.began_s, self.limit_s, self.clusters = given, time.monotonic(), limit_s, []
        self.socket.sendall(json.dumps({"item": item, "schedule": schedule, "keep": keep}).encode() + b"\n")

    @property
    def left_s(self) -> float:
        """How long the run may still take."""
        return self.began_s + self.limit_s - time.monotonic()

    def answers(self) -> list[dict[str, Any]]:
        """What it has said since it was last asked. Errors: EOFError: it has ended by itself."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise EOFError
        *whole, self._lines = (self._lines + data).split(b"\n")
        found = []
        for each in map(json.loads, whole):
            if "cluster" in each:
                self.clusters.append(Address(*each["cluster"]))
            else:
                found.append(each)
        return found

    def stacks(self) -> str:
        """Where the threads of its process are, the newest call first."""
        with suppress(OSError):
            os.kill(self.pid, signal.SIGUSR1)
            time.sleep(STACK_S)
        self._stacks.seek(0)
        return own_frames(self._stacks.read().decode(errors="replace"))

    def kill(self) -> None:
        """End it at once, with the processes that it has started; its clusters end with it."""
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        self._wait()

    def end(self) -> None:
        """Let it take its fixtures down."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
            self.socket.settimeout(30)
            while self.socket.recv(1 << 16):
                pass
        self.kill()

    def _wait(self) -> None:
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self.socket.close()
        self._stacks.close()


def own_frames(text: str) -> str:
    """Of the stacks that faulthandler writes, the frames of the test and its clients: not those of pytest below it."""
    kept: list[str] = []
    is_below = False
    for each in text.splitlines():
        if not each.startswith("  File"):
            is_below = False
        is_below = is_below or "/_pytest/" in each or "/pluggy/" in each
        if not is_below:
            kept.append(each)
    return "\n".join(kept)[:MOST_STACK]


def _child(session: pytest.Session, line: socket.socket, stacks: Any) -> None:
    """Run what comes, and end this process."""
    code = 1
    try:
        with suppress(OSError):
            os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
        _capture_apart(session.config)
        with line.makefile("rb") as lines:
            for asked in lines:
                told = json.loads(asked)
                session.config.option.momus_keep_failed = told["keep"]
                answer = _run(session, session.items[told["item"]], told["schedule"], line)
                line.sendall(json.dumps(answer).encode() + b"\n")
        session._setupstate.teardown_exact(None)
        code = 0
    except BaseException as error:
        with suppress(OSError):
            line.sendall(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
    finally:
        os._exit(code)


def _capture_apart(config: pytest.Config) -> None:
    """Capture output into files of this process: a fork shares those of its parent."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None and capture._global_capturing is not None:
        capture.read_global_capture()
        capture.stop_global_capturing()
        capture.start_global_capturing()


def _run(session: pytest.Session, item: pytest.Item, text: str | None, line: socket.socket) -> Any:
    """Run a test once. Returns its reports, and what the watch has seen."""

    def told(address: Address) -> None:
        line.sendall(json.dumps({"cluster": list(address)}).encode() + b"\n")

    item.stash[FAILED], item.stash[REPORT], item.stash[SKIPPED] = False, "", False
    item.stash[RUN], item.stash[KEPT] = f"{item.nodeid} {text or ''}".rstrip(), []
    watch = explored.watch = Watch(None if text is None else parse(text), told)
    began_s = time.monotonic()
    try:
        runner: Any = session.config.pluginmanager.getplugin("runner")
        # The session as what comes next: all but its own fixtures are taken down, and made again by the next run.
        reports = runner.runtestprotocol(item, log=False, nextitem=session)
    finally:
        explored.watch = None
    hook = session.config.hook
    return {
        "reports": [hook.pytest_report_to_serializable(config=session.config, report=report) for report in reports],
        "seconds": time.monotonic() - began_s,
        "kept": item.stash[KEPT],
        "hits": watch.hits,
        "outcomes": watch.outcomes,
        "left": watch.left,
        "rows": watch.rows,
        "dropped": watch.dropped,
        "brokers": watch.brokers,
        "shut_out": watch.shut_out,
    }
