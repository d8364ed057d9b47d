"""A standalone Spark cluster on loopback: a master and two workers from PySpark's own jars, each a process of its own.

Each worker has one core and 1 GB; its executors run a Python that cannot import this checkout.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pyspark

from pipeline.spark_setup.java import java_home

WORKERS = 2
WORKER_MEMORY, EXECUTOR_MEMORY = "1g", "512m"
LOOK_S = 0.02
MOST_LOOKS = 6000
EXECUTOR = "CoarseGrainedExecutorBackend"
PYTHON_WORKERS = "pyspark.daemon"
_ADDRESS = re.compile(r"Starting Spark master at (spark://\S+)")
_PAGE = re.compile(r"Bound MasterWebUI to \S+, and started at (http://\S+)")
HOME = Path(pyspark.__file__).parent
ENVIRONMENT = {
    "SPARK_HOME": str(HOME),
    "JAVA_HOME": str(java_home()),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_SCALA_VERSION": "2.13",  # a worker cannot tell it from PySpark's folder
}


class Cluster:
    """The master's address, and the processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("master", "deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.address, page = self._said("master", _ADDRESS), self._said("master", _PAGE)
        for number in range(WORKERS):
            words = ("--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", WORKER_MEMORY)
            work = folder / f"worker-{number}"
            self._start(f"worker-{number}", "deploy.worker.Worker", *words, "-d", str(work), self.address)
        self._page = f"{page}/json/"
        self._until(lambda: self.state()["aliveworkers"] == WORKERS, "the workers have not registered")

    def state(self) -> dict[str, Any]:
        """What the master says of itself."""
        with urlopen(self._page, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def executors(self) -> list[psutil.Process]:
        """The executors that run, of all workers."""
        found = []
        for worker in self._processes[1:]:
            for child in psutil.Process(worker.pid).children():
                with suppress(psutil.NoSuchProcess):
                    if any(EXECUTOR in word for word in child.cmdline()):
                        found.append(child)
        return found

    def kill_an_executor_at_work(self, job: subprocess.Popen[str]) -> int:
        """SIGKILL to one whose Python computes; returns its resident bytes; 0: the job ended before."""
        used: dict[int, float] = {}
        for _ in range(MOST_LOOKS):
            for executor in self.executors():
                with suppress(psutil.NoSuchProcess):
                    for each in _python_workers(executor):
                        before, used[each.pid] = used.get(each.pid, 0.0), sum(each.cpu_times()[:2])
                        if used[each.pid] > before:
                            resident = int(executor.memory_info().rss)
                            executor.send_signal(signal.SIGKILL)
                            return resident
            with suppress(subprocess.TimeoutExpired):
                job.wait(LOOK_S)
                return 0
        raise AssertionError("no executor has run a task of Python's")

    def stop(self) -> None:
        """End all processes."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(60)

    def _start(self, name: str, program: str, *words: str) -> None:
        command = [f"{ENVIRONMENT['JAVA_HOME']}/bin/java", "-Xmx256m", "-cp", f"{HOME}/jars/*"]
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [*command, f"org.apache.spark.{program}", *words],
                    stdout=log,
                    stderr=log,
                    cwd=self._folder,
                    env=os.environ | ENVIRONMENT,
                )
            )

    def _said(self, name: str, pattern: re.Pattern[str]) -> str:
        path = self._folder / f"{name}.log"
        self._until(lambda: pattern.search(path.read_text()) is not None, f"{name} has not started")
        found = pattern.search(path.read_text())
        assert found is not None
        return found[1]

    def _until(self, done: Any, otherwise: str) -> None:
        for _ in range(MOST_LOOKS):
            if done():
                return
            with suppress(subprocess.TimeoutExpired):
                self._processes[-1].wait(LOOK_S)
                raise AssertionError(self._logs())
        raise AssertionError(f"{otherwise}: {self._logs()}")

    def _logs(self) -> str:
        return "\n".join(path.read_text()[-2000:] for path in self._folder.glob("*.log"))


def _python_workers(executor: psutil.Process) -> list[psutil.Process]:
    """The processes that the daemon has forked, one a running task."""
    daemons = [each for each in executor.children() if any(PYTHON_WORKERS in word for word in each.cmdline())]
    return [child for daemon in daemons for child in daemon.children()]


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster, from its start to its end."""
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        cluster.stop()


def bare_python(folder: Path) -> Path:
    """An interpreter with what is installed here, but without this checkout: its .pth file is not read."""
    program, packages = folder / "python", Path(pyspark.__file__).parents[1]
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec {sys.executable} -S "$@"\n')
    program.chmod(0o755)
    return program


def lost_tasks(events: Path) -> tuple[int, int]:
    """By Spark's event logs: how many executors were lost, and how many tasks with them."""
    executors = tasks = 0
    for path in events.rglob("*"):
        if path.is_file() and not path.name.startswith(("appstatus", ".")):
            for line in path.read_text().splitlines():
                event = json.loads(line)
                executors += event["Event"] == "SparkListenerExecutorRemoved"
                if event["Event"] == "SparkListenerTaskEnd":
                    tasks += event["Task End Reason"]["Reason"] == "ExecutorLostFailure"
    return executors, tasks
