"""Runs the table of what an installed momus must do: `python tests/installed BIN [--bare | --extras] [WORDS]`.

WORDS: only scenes with these in their names. BIN is the folder of the programs of an environment that momus is
installed in, outside the checkout. The lines run in a network of their own, where root or user namespaces make one:
their ports are those of the documents. Exit code 1: a line did not do what its row says; each is told.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import networks
import pages
from table import SCENES, Scene

LIMIT_S = 60  # ends what hangs
ROW = re.compile(r"^(?P<line>.*?)(?:\s+# (?:exit (?P<code>\d+))?\s*(?:=> ?(?P<shown>.*))?)?$")


class Row(NamedTuple):
    """A line, how it must end and what it must print."""

    line: str
    code: int
    shown: str


def rows(lines: str) -> list[Row]:
    """The rows of a scene."""
    found = (ROW.match(line) for line in lines.splitlines() if line.strip())
    return [Row(each["line"].strip(), int(each["code"] or 0), each["shown"] or "") for each in found if each]


class Stage:
    """A scene that runs: its folder, and what goes on running in it."""

    def __init__(self, bin_folder: Path, folder: Path) -> None:
        self.folder = folder
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "MOMUS_", "KAFKA_"))}
        self.environment = {**kept, "PATH": f"{bin_folder}:{os.environ['PATH']}", "HOME": str(folder)}
        self.running: list[tuple[subprocess.Popen[bytes], Path]] = []

    def run(self, row: Row) -> str:
        """Empty, or what is wrong."""
        if row.line == "stop all":
            return "".join([self._stop() for _ in list(self.running)])
        if row.line == "stop":
            return self._stop()
        if row.line.endswith("&"):
            return self._start(row)
        done = subprocess.run(
            ["bash", "-uo", "pipefail", "-c", row.line],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_S,
        )
        text = done.stdout.decode(errors="replace")
        if done.returncode != row.code:
            return f"ended with {done.returncode}, not {row.code}: {text}"
        return "" if re.search(row.shown, text) else f"printed nothing like {row.shown}: {text}"

    def _start(self, row: Row) -> str:
        place = self.folder / f".out-{len(self.running)}-{time.monotonic_ns()}"
        with place.open("wb") as out:
            command = ["bash", "-uc", f"exec {row.line.removesuffix('&')}" if "|" not in row.line else row.line[:-1]]
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.running.append((process, place))
        until = time.monotonic() + LIMIT_S
        while not re.search(row.shown or "momus ready", text := place.read_text(errors="replace")):
            if process.poll() is not None or time.monotonic() > until:
                return f"never printed {row.shown or 'momus ready'}: {text}"
            time.sleep(0.02)
        return ""

    def _stop(self) -> str:
        process, place = self.running.pop()
        os.killpg(process.pid, signal.SIGTERM)
        code = process.wait(LIMIT_S)
        return "" if code in (0, -signal.SIGTERM) else f"ended with {code}: {place.read_text(errors='replace')}"

    def end(self) -> None:
        """End what still runs."""
        while self.running:
            process, _ = self.running.pop()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(LIMIT_S)


def play(scene: Scene, bin_folder: Path) -> tuple[int, list[str]]:
    """How many rows of a scene were run, and what went wrong; without what is to serve them, the others are not run."""
    folder = Path(tempfile.mkdtemp(prefix="momus-installed-"))
    for name, text in scene.files.items():
        (folder / name).write_text(text)
    stage, wrong, count = Stage(bin_folder, folder), [], 0
    try:
        for row in rows(scene.lines):
            count += 1
            try:
                problem = stage.run(row)
            except subprocess.TimeoutExpired:
                problem = f"did not end in {LIMIT_S} s"
            if problem:
                wrong.append(f"{row.line}\n    {problem.strip()}")
                if row.line.endswith("&"):
                    break
    finally:
        stage.end()
        shutil.rmtree(folder, ignore_errors=True)
    return count, wrong


def main(words: list[str]) -> int:
    """Exit code."""
    bin_folder = Path(words[0]).absolute()
    networks.enter_a_new_one()
    wrong, count, begun = [], 0, time.monotonic()
    kinds = {word == "--extras" for word in words[1:] if word.startswith("--")} or {True, False}
    named = " ".join(word for word in words[1:] if not word.startswith("--"))
    for scene in (*SCENES, *pages.scenes()):
        if scene.extras in kinds and named in scene.name:
            played, found = play(scene, bin_folder)
            wrong += [f"{scene.name}: {each}" for each in found]
            count += played
    told = [*wrong, f"the lines of the table in {time.monotonic() - begun:.0f} s:"]
    sys.stdout.write("\n".join([*told, f"{count - len(wrong)} passed, {len(wrong)} failed"]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
