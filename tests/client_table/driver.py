"""A driver's process: how each client's is had and started, and one command at a time with a limit."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent / "drivers"
sys.path.append(str(HERE.parents[1] / "ecosystem"))

import kit  # noqa: E402 - found by the line above
from kit import NotRunError  # noqa: E402, F401 - as above; it is what `made` raises

LOGS = kit.REPOSITORY / "build" / "client-table"
START_S = 60.0  # ends what hangs at its start
CLOSE_S = 5.0


class HungError(Exception):
    """A command has not been answered in time; the process cannot be used any more."""


class RefusedError(Exception):
    """The client's call has failed: `name` as the client names it."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


def _python(script: str) -> tuple[list[str], Path]:
    return [sys.executable, "-W", "ignore", str(HERE / script)], HERE


def _java() -> tuple[list[str], Path]:
    path = kit.compiled(HERE / "java", "Driver.java")
    return [*kit.JVM, "-Xmx96m", "-cp", path, "Driver"], HERE


def _go(name: str) -> tuple[list[str], Path]:
    folder = HERE / name
    made = kit.edition(folder, "main.go", "go.mod", "go.sum") / name
    if not made.exists():
        kit.fetch(("go", "build", "-mod=readonly", "-o", made, "."), cwd=folder)
    return [str(made)], folder


def _node() -> tuple[list[str], Path]:
    folder = HERE / "kafkajs"
    names = ("package.json", "package-lock.json", "driver.js")
    made = kit.edition(folder, *names)
    if not (made / "complete").exists():
        for name in names:
            shutil.copy(folder / name, made)
        kit.fetch(("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"), cwd=made)
        (made / "complete").touch()
    return ["node", "--max-old-space-size=128", "driver.js"], made


MAKERS: dict[str, Callable[[], tuple[list[str], Path]]] = {
    "kafka-python": lambda: _python("kafka_python_driver.py"),
    "aiokafka": lambda: _python("aiokafka_driver.py"),
    "confluent-kafka": lambda: _python("confluent_driver.py"),
    "java": _java,
    "franz-go": lambda: _go("franz_go"),
    "sarama": lambda: _go("sarama"),
    "kafkajs": _node,
}
_making = threading.Lock()


@cache
def _made(client: str) -> tuple[list[str], Path]:
    return MAKERS[client]()


def made(client: str) -> tuple[list[str], Path]:
    """Command and folder, fetched and built the first time. Errors: kit.NotRunError."""
    with _making:
        return _made(client)


class Driver:
    """One process of a client. `said`: its own name and version."""

    def __init__(self, client: str) -> None:
        command, folder = made(client)
        LOGS.mkdir(parents=True, exist_ok=True)
        self.client = client
        self._answers: queue.Queue[list[str] | None] = queue.Queue()
        settings = {**os.environ, "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
        with (LOGS / f"{client}.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder, env=settings
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.is_usable = True
        self.said = " ".join(self.answer(time.monotonic() + START_S, "its start"))

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line.decode(errors="replace").rstrip("\n").split("\t"))
        self._answers.put(None)

    def begin(self, *words: str) -> None:
        """Send a command; `answer` waits for what it comes to."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # `answer` says that the process has ended
            self._process.stdin.write(("\t".join(words) + "\n").encode())
            self._process.stdin.flush()

    def answer(self, deadline: float, what: str = "an answer") -> list[str]:
        """What the command came to. Errors: HungError, RefusedError."""
        try:
            words = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            self.is_usable = False
            raise HungError(what) from None
        if words is None:
            self.is_usable = False
            raise RefusedError("the process ended", f"{self.client}: exit code {self._process.wait()}")
        if words[0] == "error":
            raise RefusedError(words[1], words[2] if len(words) > 2 else "")
        return words[1:]

    def has_answered(self) -> bool:
        """Whether `answer` would not wait."""
        return not self._answers.empty()

    def ask(self, deadline: float, *words: str) -> list[str]:
        """Both."""
        self.begin(*words)
        return self.answer(deadline, words[0])

    def close_client(self) -> None:
        """The client's own end; a process that does not come to it is ended."""
        try:
            self.ask(time.monotonic() + CLOSE_S, "close")
        except (HungError, RefusedError, OSError):
            self.kill()

    def kill(self) -> None:
        self.is_usable = False
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # what it was still to be told
                pipe.close()
