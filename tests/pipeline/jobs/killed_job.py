"""A job of the pipeline as processes of its own: killed at work, started again, and in the end asked to stop."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pipeline.source.plan_file import read_plan
from pipeline.streaming.position_table import POSITION, read_position

PAUSE_S = 0.05  # between two looks
MOST_LOOKS = 12_000  # in one life: then it does nothing at all
REST_LOOKS = 40
# Spark for half a minute: to compile it well costs more than that gains.
OPTIONS = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
CONF = ("spark.driver.memory=1g", "spark.sql.shuffle.partitions=2")


class KilledJob:
    """`momus pipeline NAME --follow --every 1`, life after life."""

    def __init__(self, name: str, data: Path, folder: Path, seed: int, *words: str) -> None:
        self.name, self.words, self.data, self.output = name, words, data, folder / name
        self.in_the_middle = 0  # kills between the first and the last file of a micro-batch or round
        self._rng = random.Random(f"{name} {seed}")
        self._log = folder / f"{name}.log"
        conf = [word for pair in (*CONF, f"spark.local.dir={folder / 'spark'}") for word in ("--conf", pair)]
        self._command = [sys.executable, "-m", "momus", "pipeline", name, "--master", "local[2]", *conf]
        self._command += ["--input", str(data), "--output", str(self.output), "--follow", "--every", "1", *words]

    def lives(self, kills: int, *, is_stopped: bool) -> Generator[None]:
        """So many that are killed, and one that is asked to stop; after each step somebody else may do something."""
        for kill in range(kills):
            yield from self._live_and_die(is_late=kill % 2 == 0)
        if is_stopped:
            yield from self._live_and_stop()

    def _live_and_die(self, *, is_late: bool) -> Generator[None]:
        """All processes at once, while there is more begun than done; late, when its rows are written already."""
        with self._process() as process:
            yield from self._work(process, self._rng.randint(1, 2), self._rng.randrange(REST_LOOKS))
            for _ in range(MOST_LOOKS):
                begun, done = self._marks()
                if (_newest(self.output / "_state", "batch=") if is_late and self._is_stream() else begun) > done:
                    break
                self._rest(process)
                yield
            else:
                pytest.fail(f"{self.name} begins nothing more: {self._log.read_text()}")
        begun, done = self._marks()
        self.in_the_middle += begun > done

    def _live_and_stop(self) -> Generator[None]:
        """By SIGTERM, once something more is done."""
        with self._process() as process:
            yield from self._work(process, 2, self._rng.randrange(REST_LOOKS))
            process.terminate()
            for _ in range(MOST_LOOKS):
                with suppress(subprocess.TimeoutExpired):
                    assert process.wait(PAUSE_S) == 0, self._log.read_text()
                    return
                yield
            pytest.fail(f"{self.name} does not end: {self._log.read_text()}")

    @contextmanager
    def _process(self) -> Iterator[subprocess.Popen[bytes]]:
        with self._log.open("ab") as log:
            environment = os.environ | OPTIONS
            process = subprocess.Popen(self._command, stdout=log, stderr=log, env=environment, start_new_session=True)
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _work(self, process: subprocess.Popen[bytes], steps: int, looks: int) -> Generator[None]:
        """Until so many more steps are begun or done, and for some looks more."""
        goal = sum(self._marks()) + steps
        for _ in range(MOST_LOOKS):
            if sum(self._marks()) >= goal:
                break
            self._rest(process)
            yield
        else:
            pytest.fail(f"{self.name} gets nowhere: {self._log.read_text()}")
        for _ in range(looks):
            self._rest(process)
            yield

    def _rest(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(PAUSE_S)
            pytest.fail(f"{self.name} has ended: {self._log.read_text()}")

    def _is_stream(self) -> bool:
        return (self.output / POSITION).exists()

    def _marks(self) -> tuple[int, int]:
        """How many micro-batches, or rounds, were begun and how many done."""
        state = self.output / "_state"
        if self._is_stream():
            position = read_position(str(self.output))
            assert position is not None
            plans = {view: read_plan(f"{self.output}/_plan/{view}.json") for view in position.ends}
            is_begun = any(plan is not None and plan.end != position.ends[view] for view, plan in plans.items())
            return position.batch + 1 + is_begun, position.batch + 1
        ledger = state / "ledger.json"
        done = json.loads(ledger.read_text())["round"] + 1 if ledger.exists() else 0
        return max(_newest(state, "round="), done), done


def _newest(folder: Path, prefix: str = "") -> int:
    """One more than the greatest number that a name there has."""
    names = os.listdir(folder) if folder.exists() else []
    numbers = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    return max((int(number) + 1 for number in numbers if number.isdigit()), default=0)
