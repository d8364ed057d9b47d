"""Records a broker under load, cuts its disk at random moments, and has it begin again on each: is all there?

    make power-cuts ARGS="--cuts 5000 --state DIR [--resume] [--momus COMMAND] [--flush os] [--process N]"

All that clients were told at `--flush fsync` must be. `--process N`: every Nth disk is given to a process of its own,
the others to the broker's core in this one. With `--flush os` something must be lost, or this checker sees nothing.
"""

from __future__ import annotations

import argparse
import json
import logging
import pickle
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from core_broker import DATA, Client, World

from power_cuts.check import Check, WrongError
from power_cuts.disk import Disk
from power_cuts.ledger import Ledger, View
from power_cuts.load import COMPACT, KEPT, PARTITIONS, Caller, Load, make
from power_cuts.recording import environment, events
from storage.files.sim_env import MemoryFiles, sim_env

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "2",
    "log.cleaner.backoff.ms": "100",
    "log.flush.offset.checkpoint.interval.ms": "700",
}
AFTER_A_COPY = 200  # events: what was copied may not be synced yet
MOMUS = f"{shlex.quote(sys.executable)} -m momus"


class Process:
    """A broker of its own on a directory."""

    def __init__(self, momus: str, folder: Path, flush: str, env: dict[str, str] | None = None) -> None:
        words = [*shlex.split(momus), "serve", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]
        words += ["--data-dir", str(folder), "--flush", flush, "--log-level", "error"]
        for key, value in SETTINGS.items():
            words += ["--set", f"{key}={value}"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline().split()
        if ready[:2] != ["momus", "ready"]:
            self.process.kill()
            raise WrongError(f"the broker does not begin: {ready}")
        self.address = ready[2]
        self.control = self.process.stdout.readline().split()[2]

    def ask(self, path: str, **given: str) -> Any:
        """One call of the control plane, of the cluster."""
        url = f"http://{self.control}/_admin/clusters/default/{path}"
        request = urllib.request.Request(url, json.dumps(given).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def kill(self) -> None:
        with self.process:  # which waits for it, and closes its pipe
            self.process.kill()


@contextmanager
def running(*given: Any) -> Iterator[Process]:
    """A Process until the end of the block."""
    process = Process(*given)
    try:
        yield process
    finally:
        process.kill()


def record(state: Path, momus: str, flush: str, seed: int, seconds: float) -> Ledger:
    """Run a broker under load, with a snapshot, a fork and a restore; write down what it did to its disk."""
    data, recording = state / "recorded", state / "recording"
    shutil.rmtree(data, ignore_errors=True)
    recording.unlink(missing_ok=True)
    data.mkdir(parents=True)
    ledger = Ledger()
    with running(momus, data, flush, environment(data, recording)) as broker:
        with Caller(broker.address) as client:
            load = Load(broker.address, recording, ledger, seed, "a")
            first = ledger.ask("topic", load.now(), name=KEPT, exists=True)
            make(client, KEPT, PARTITIONS, segment_bytes="1048576")
            load.told(first)
            make(
                client, COMPACT, 1, cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.01"
            )
        load.start()
        time.sleep(seconds / 2)
        taken = ledger.ask("snapshot", load.now(), name="s")
        broker.ask("snapshots", name="s")
        load.told(taken)
        forked = ledger.ask("fork", load.now(), name="f", snapshot="s")
        broker.ask("fork", name="f", snapshot="s")
        load.told(forked)
        time.sleep(seconds / 2)
        load.stop()
        restored = ledger.ask("restore", load.now(), name="s")
        broker.ask("restore", snapshot="s")
        load.told(restored)
        load = Load(broker.address, recording, ledger, seed, "b")
        load.start()
        time.sleep(seconds / 2)
        load.stop()
    return ledger


def in_core(found: dict[str, bytes], flush: str, view: View | None, seed: int) -> None:
    """Begin on a disk in memory, and look. Errors: WrongError."""
    files = MemoryFiles()
    files.makedirs(DATA)
    files.sync_dir("")
    for path, content in found.items():
        if path.endswith("/"):
            files.makedirs(f"{DATA}/{path}")
        else:
            files.write_file_atomic(f"{DATA}/{path}", content)
    env = sim_env(seed, int(time.time() * 1000) + 60_000, files)
    world = World(flush, env, **{key.replace(".", "_"): value for key, value in SETTINGS.items()})
    client = Client(world)
    Check(client.call, view).run()


def in_process(found: dict[str, bytes], momus: str, flush: str, view: View | None, folder: Path) -> None:
    """The same with a process on the real disk."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path, content in found.items():
        if path.endswith("/"):
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)
    with running(momus, folder, flush) as broker, Caller(broker.address) as client:
        Check(client.call, view, lambda: time.sleep(0.05)).run()


def below(found: dict[str, bytes], prefix: str) -> dict[str, bytes]:
    """The files of a folder, by path from there."""
    return {path[len(prefix) :]: data for path, data in found.items() if path.startswith(prefix) and path != prefix}


class Campaign:
    """Cuts of one recording."""

    def __init__(self, state: Path, ledger: Ledger, options: argparse.Namespace, seed: int) -> None:
        self.state = state
        self.ledger = ledger
        self.options = options
        self.seed = seed
        self.wrong: list[str] = []
        self.checked = 0

    def run(self, cuts: int) -> None:
        """Cut so many times, at moments spread over the recording, and check each disk."""
        rng = Random(f"{self.seed} cuts")
        moments = [event.end for event in events(self.state / "recording")]
        if self.options.late:  # a start that is cut has nothing to lose yet
            moments = moments[len(moments) // 10 :]
        rare = [entry.told for entry in self.ledger.entries if entry.kind in ("snapshot", "fork", "restore")]
        after = [at for at, moment in enumerate(moments) if any(moment >= told for told in rare)]
        soon = [at for told in rare for at in [each for each in after if moments[each] >= told][:AFTER_A_COPY]]
        chosen = sorted(
            moments[rng.choice(soon) if soon and rng.random() < 0.2 else rng.randrange(len(moments))]
            for _ in range(cuts)
        )
        only = self.options.only
        disk = Disk(str(self.state / "recorded"))
        at = 0
        for event in events(self.state / "recording"):
            disk.apply(event)
            while at < len(chosen) and chosen[at] == event.end:
                if self.wrong and self.options.first:
                    return
                if only is None or at == only:
                    self.one(disk, event.end, Random(f"{self.seed} {at}"), at)
                at += 1

    def one(self, disk: Disk, moment: int, rng: Random, number: int) -> None:
        """One disk."""
        found = disk.cut(rng)
        views: list[tuple[str, View | None]] = [("", self.ledger.view(moment))]
        views += [(f"clusters/{name}/", view) for name, view in self.ledger.forks(moment)]
        for prefix, view in views:
            part = below(found, prefix) if prefix else found
            try:
                if not prefix and self.options.process and number % self.options.process == 0:
                    in_process(part, self.options.momus, self.options.flush, view, self.state / "rebuilt")
                else:
                    in_core(part, self.options.flush, view, number)
            except Exception as error:  # whatever it is: the broker does not begin, or does not answer as it should
                self.wrong.append(
                    f"seed {self.seed} cut {number} at {moment} {prefix}: {type(error).__name__}: {error!s:.300}"
                )
        self.checked += 1


def main(words: list[str] | None = None) -> int:
    """The command line. Returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=5000)
    parser.add_argument("--cuts-a-run", type=int, default=250)
    parser.add_argument("--seconds", type=float, default=3.0, help="of load in each run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flush", default="fsync", choices=("os", "fsync"))
    parser.add_argument("--momus", default=MOMUS, help="the command that is recorded")
    parser.add_argument("--process", type=int, default=0, help="every so many disks are given to a process")
    parser.add_argument("--state", type=Path, default=Path("build/power-cuts"))
    parser.add_argument("--resume", action="store_true")
    parser.add_argument(
        "--again", type=Path, help="a recording that was kept as wrong, with --seed and --cuts-a-run as then"
    )
    parser.add_argument("--only", type=int, help="the number of one cut")
    parser.add_argument("--first", action="store_true", help="end with the first that is wrong")
    parser.add_argument("--late", action="store_true", help="no cuts in the first tenth")
    options = parser.parse_args(words)
    logging.disable(logging.ERROR)  # each start tells of what it has cut
    progress = options.state / "progress.json"
    done: dict[str, Any] = {"cuts": 0, "wrong": [], "seed": options.seed}
    if options.resume:
        with suppress(FileNotFoundError):
            done = json.loads(progress.read_text())
    options.state.mkdir(parents=True, exist_ok=True)
    if options.again is not None:
        entries = pickle.loads(options.again.with_suffix(".ledger").read_bytes())
        shutil.copy(options.again, options.state / "recording")
        campaign = Campaign(options.state, Ledger(entries), options, options.seed)
        campaign.run(options.cuts_a_run)
        print("\n".join(campaign.wrong) or "nothing is wrong")
        return bool(campaign.wrong)
    while done["cuts"] < options.cuts:
        ledger = record(options.state, options.momus, options.flush, done["seed"], options.seconds)
        campaign = Campaign(options.state, ledger, options, done["seed"])
        campaign.run(min(options.cuts_a_run, options.cuts - done["cuts"]))
        done["cuts"] += campaign.checked
        done["wrong"] += campaign.wrong
        if campaign.wrong:
            kept = options.state / f"wrong-{done['seed']}"
            shutil.copy(options.state / "recording", kept)
            kept.with_suffix(".ledger").write_bytes(pickle.dumps(ledger.entries))
        done["seed"] += 1
        if options.first and done["wrong"]:
            done["cuts"] = options.cuts
        progress.write_text(json.dumps(done, indent=1))
        told = sum(entry.told < 1 << 62 for entry in ledger.entries)
        print(f"{done['cuts']} cuts, {len(done['wrong'])} wrong; the last run had {told} answers", flush=True)
        for line in campaign.wrong[:5]:
            print(f"  {line}", flush=True)
    return bool(done["wrong"]) is (options.flush == "fsync")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # what was started ends as well
    sys.exit(main())
