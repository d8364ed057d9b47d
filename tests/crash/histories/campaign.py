"""Runs workers on a broker that is killed, paused, moved in time and changed, and checks what they saw.

    make histories ARGS="--kills 500 --state DIR [--resume] [--momus COMMAND] [--seed 7]"

A history has ten kills. Then a snapshot is taken and forked; more is written, and the snapshot restored: the fork and
the restored cluster must have what the snapshot had.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from core_requests import produce_request
from txn_kit import not_aborted
from wire_peer import Peer, make_topic

from histories import checks
from histories.history import Op, read
from histories.places import PARTITIONS, TOPIC
from histories.workers import committed, fetched
from protocol.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.record_batch import iter_batches, iter_records

WORKERS = {
    "ct0": "confluent-transactions",
    "ct1": "confluent-transactions",
    "at0": "aiokafka-transactions",
    "ci0": "confluent-idempotent",
    "kp0": "kafka-python-idempotent",
    "ap0": "aiokafka-plain",
    "commits0": "raw-commits",
    "commits1": "raw-commits",
    "offsets0": "raw-offsets",
    "offsets1": "raw-offsets",
    "reads0": "raw-reads",
    "reads1": "raw-reads",
    "remakes0": "raw-remakes",
    "repeats0": "raw-repeats",
}
MOMUS = f"{shlex.quote(sys.executable)} -m momus"
NEMESIS = ("kill", "kill", "pause", "clock", "features", "wait")
LIMIT_S = 120


class BrokerProcess:
    """A broker that can be killed and begins again at the same address."""

    def __init__(self, momus: str, folder: Path, flush: str) -> None:
        self._words = [*shlex.split(momus), "serve", "--control", "127.0.0.1:0", "--data-dir", str(folder)]
        self._words += ["--flush", flush, "--log-level", "error", "--set", "offsets.topic.num.partitions=4"]
        self._words += ["--set", "transaction.state.log.num.partitions=3"]
        # Some records are years old: the first check of retention, which a long history reaches, would delete them.
        self._words += ["--set", "log.retention.ms=-1"]
        self.address = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen([*self._words, "--listen", self.address], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline().split()
        assert ready[:2] == ["momus", "ready"], f"the broker does not begin: {ready}"
        self.address = ready[2]
        self.control = self.process.stdout.readline().split()[2]

    def kill(self) -> None:
        with self.process:  # which waits for it, and closes its pipe
            self.process.kill()

    def pause(self, seconds: float) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.process.pid, signal.SIGCONT)

    def ask(self, path: str, **given: Any) -> Any:
        """One call of the control plane, of the cluster."""
        url = f"http://{self.control}/_admin/clusters/default/{path}"
        request = urllib.request.Request(url, json.dumps(given).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            return json.load(answer)


def disturb(broker: BrokerProcess, what: str, rng: Random) -> None:
    """One thing that goes wrong, or changes."""
    if what == "kill":
        broker.kill()
        time.sleep(rng.random() * 0.2)
        broker.start()
    elif what == "pause":
        broker.pause(rng.random() * 1.5)
    elif what == "clock":
        with suppress(OSError, urllib.error.HTTPError):
            broker.ask("clock", advance_ms=rng.choice((50, 1000, 20_000)))
    elif what == "features":
        update = FeatureUpdateKey(feature="transaction.version", max_version_level=rng.choice((1, 2)), upgrade_type=2)
        with suppress(OSError), Peer(broker.address) as peer:
            peer.call(UpdateFeaturesRequest(feature_updates=[update]), 1)


def final(address: str, groups: set[str]) -> checks.Final:
    """All that a broker has now. Errors: AssertionError: it cannot be read, or a transaction stays open."""
    logs: list[checks.Log] = [{}, {}]
    with Peer(address) as peer:
        for partition in range(PARTITIONS):
            for level in (0, 1):
                found = logs[level][partition] = []
                offset = 0
                while True:
                    answer = settled(peer, partition, offset, level)
                    data = bytes(answer.records or b"")
                    records = not_aborted(data, answer.aborted_transactions) if level else all_records(data)
                    found += [(each.offset, (each.value or b"").decode()) for each in records if each.offset >= offset]
                    for _, header in iter_batches(data):
                        offset = header.next_offset
                    if not data or offset >= answer.high_watermark:
                        break
        offsets = {}
        for group in groups:
            for _ in range(400):
                code, offset = committed(peer, group, require_stable=True)
                if code not in (14, 15, 16, 88):
                    break
                time.sleep(0.05)
            assert code == 0, f"{group}: error {code}"
            if offset >= 0:
                offsets[group] = offset
    return checks.Final(logs[0], logs[1], offsets)


def all_records(data: bytes) -> Any:
    """The records of batches, markers left out."""
    for position, header in iter_batches(data):
        if not header.is_control:
            yield from iter_records(data[position : position + header.size])


def settled(peer: Peer, partition: int, offset: int, level: int) -> Any:
    """A Fetch once no transaction is open. Errors: AssertionError."""
    for _ in range(400):
        answer = fetched(peer, TOPIC, partition, offset, level)
        if answer.error_code == 0 and answer.last_stable_offset == answer.high_watermark:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"partition {partition}: error {answer.error_code}, stable {answer.last_stable_offset}")


class History:
    """One run."""

    def __init__(self, state: Path, momus: str, flush: str, seed: int) -> None:
        self.folder = state / "history"
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "data").mkdir(parents=True)
        self.seed = seed
        self.rng = Random(f"{seed} nemesis")
        self.broker = BrokerProcess(momus, self.folder / "data", flush)
        self.kills = self.disturbed = 0
        self.ops: list[Op] = []

    def run(self, kills: int, pause_s: float = 1.0) -> list[str]:
        """Until so many kills; then what is wrong."""
        try:
            with Peer(self.broker.address) as peer:
                make_topic(peer, TOPIC, PARTITIONS)
            workers = [self._worker(name, kind) for name, kind in WORKERS.items()]
            try:
                while self.kills < kills:
                    time.sleep(self.rng.random() * 2 * pause_s)
                    what = self.rng.choice(NEMESIS)
                    disturb(self.broker, what, self.rng)
                    self.kills += what == "kill"
                    self.disturbed += 1
                time.sleep(pause_s)
                (self.folder / "stop").touch()
                for worker in workers:
                    with suppress(subprocess.TimeoutExpired):
                        worker.wait(LIMIT_S // 4)
            finally:
                for worker in workers:
                    worker.kill()
                    worker.wait()
            return self._check()
        finally:
            self.broker.kill()

    def _worker(self, name: str, kind: str) -> subprocess.Popen[bytes]:
        words = [
            sys.executable,
            "-m",
            "histories.workers",
            kind,
            self.broker.address,
            str(self.folder),
            name,
            str(self.seed),
        ]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # pytest's is not in os.environ
        return subprocess.Popen(words, stderr=subprocess.DEVNULL, env=env)

    def _check(self) -> list[str]:
        broker = self.broker
        self.ops = read(sorted(self.folder.glob("*.jsonl")))
        groups = {op.facts["group"] for op in self.ops if "group" in op.facts}
        broker.ask("clock", advance_ms=200_000)  # what is open is aborted
        now = final(broker.address, groups)
        found = list(checks.wrong(self.ops, now))
        found += [f"no {kind} was answered, so none was checked" for kind in checks.unseen(self.ops)]
        broker.ask("snapshots", name="end")
        fork = broker.ask("fork", snapshot="end", name="fork")
        found += checks.as_before(now, final(fork["bootstrap_servers"].split(",")[0], groups))
        with Peer(broker.address) as peer:
            for partition in range(PARTITIONS):
                peer.call(produce_request(TOPIC, partition, b"later"), 9)
        broker.ask("restore", snapshot="end")
        found += checks.as_before(now, final(broker.address, groups))
        broker.kill()
        broker.start()
        found += checks.as_before(now, final(broker.address, groups))
        return found


def main(words: list[str] | None = None) -> int:
    """The command line. Returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--kills-a-history", type=int, default=10)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two disturbances, on average")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flush", default="os", choices=("os", "fsync"))
    parser.add_argument("--momus", default=MOMUS, help="the command of the broker")
    parser.add_argument("--state", type=Path, default=Path("build/histories"))
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args(words)
    progress = options.state / "progress.json"
    done: dict[str, Any] = {"kills": 0, "wrong": [], "seed": options.seed, "counted": {}}
    if options.resume:
        with suppress(FileNotFoundError):
            done = json.loads(progress.read_text())
    options.state.mkdir(parents=True, exist_ok=True)
    while done["kills"] < options.kills:
        history = History(options.state, options.momus, options.flush, done["seed"])
        try:
            found = history.run(min(options.kills_a_history, options.kills - done["kills"]), options.pause)
        except AssertionError as error:  # its directory is kept, as of each history that is wrong
            found = [f"it ended early: {error}"]
        done["kills"] += history.kills
        done["wrong"] += [f"seed {done['seed']}: {sentence}" for sentence in found[:20]]
        for kind, (answered, asked) in checks.counted(history.ops).items():
            before = done["counted"].get(kind, [0, 0])
            done["counted"][kind] = [before[0] + answered, before[1] + asked]
        if found:
            shutil.copytree(history.folder, options.state / f"wrong-{done['seed']}", dirs_exist_ok=True)
        done["seed"] += 1
        progress.write_text(json.dumps(done, indent=1))
        print(f"{done['kills']} kills, {len(done['wrong'])} wrong; answered, asked: {done['counted']}", flush=True)
        for sentence in found[:5]:
            print(f"  {sentence}", flush=True)
    return bool(done["wrong"])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # what was started ends as well
    sys.exit(main())
