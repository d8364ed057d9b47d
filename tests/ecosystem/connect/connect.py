"""Kafka Connect, exactly once: two distributed workers copy a growing file into a topic, and the topic into a file. The
one that reads the file is killed by -9 again and again."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above
from confluent_kafka import Consumer, TopicPartition  # noqa: E402 - as kit

from momus import Broker  # noqa: E402 - found by the line above

KILLS = 3
LINES = 6000  # written before each kill, and once more after the last
BATCH = 20  # lines a transaction
TOPIC = "lines"
WORKER = """\
bootstrap.servers={bootstrap}
group.id=workers
exactly.once.source.support=enabled
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.flush.interval.ms=1000
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
listeners=http://127.0.0.1:{port}
session.timeout.ms=3000
heartbeat.interval.ms=500
scheduled.rebalance.max.delay.ms=0
"""


def ask(port: int, path: str, body: object = None) -> Any:
    """A worker's answer, or None while it has none."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", content, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


def end_of_topic(bootstrap: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_uncommitted"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), 30)[1])
    finally:
        consumer.close()


class Workers:
    """Two workers of one Connect cluster."""

    def __init__(self, bootstrap: str, folder: Path, stack: contextlib.ExitStack) -> None:
        self.programs: dict[int, kit.Program] = {}
        main = ("-cp", f"{kit.jars(HERE)}/*", "org.apache.kafka.connect.cli.ConnectDistributed")
        for _ in range(2):
            port = kit.free_port()
            settings = folder / f"worker-{port}.properties"
            settings.write_text(WORKER.format(bootstrap=bootstrap, port=port))
            log = folder / f"worker-{port}.log"
            self.programs[port] = stack.enter_context(kit.Program((*kit.JVM, *main, settings), log))

    def add(self, name: str, settings: dict[str, object]) -> None:
        port = next(iter(self.programs))
        body = {"name": name, "config": {"name": name, "tasks.max": 1, **settings}}
        kit.until(lambda: ask(port, "/connectors", body) is not None, f"connector {name} is accepted")

    def task(self, connector: str) -> int | None:
        """Port of the worker that runs a connector's task now."""
        for port in self.programs:
            status = ask(port, f"/connectors/{connector}/status") or {}
            for task in status.get("tasks", ()):
                assert task["state"] != "FAILED", task
                if task["state"] == "RUNNING":
                    return int(task["worker_id"].rpartition(":")[2])
        return None


def prove() -> str:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(Broker(config={"group.min.session.timeout.ms": 1000}))
        bootstrap = broker.bootstrap_servers
        source, target = folder / "source.txt", folder / "target.txt"
        source.touch()
        kit.make_topic(bootstrap, TOPIC)
        workers = Workers(bootstrap, folder, stack)
        file_connector = "org.apache.kafka.connect.file.FileStream"
        workers.add(
            "source",
            {
                "connector.class": f"{file_connector}SourceConnector",
                "file": str(source),
                "topic": TOPIC,
                "batch.size": BATCH,
                "exactly.once.support": "required",
                "producer.override.transaction.timeout.ms": 10000,  # where no other worker fences the dead one's
            },
        )
        workers.add("sink", {"connector.class": f"{file_connector}SinkConnector", "file": str(target), "topics": TOPIC})
        written: list[str] = []

        def write_lines(count: int = LINES) -> None:
            lines = [f"line {number}" for number in range(len(written), len(written) + count)]
            with source.open("a") as file:
                file.write("".join(f"{line}\n" for line in lines))
            written.extend(lines)

        kills = rounds = 0
        while kills < KILLS:
            rounds += 1
            assert rounds < 10 * KILLS, "the worker was always done before it was killed"
            before = end_of_topic(bootstrap)
            kit.until(lambda: workers.task("source") is not None, "the source's task runs")
            write_lines()
            kit.until(lambda: end_of_topic(bootstrap) > before, "the source goes on")  # noqa: B023 - called in this round
            port = workers.task("source")
            if port is None:
                continue
            workers.programs[port].kill()
            kills += len(kit.read(bootstrap, TOPIC)[0]) < len(written)
            workers.programs[port].start()
        write_lines()

        def all_read() -> bool:
            done = kit.read(bootstrap, TOPIC)[0][-1:] == written[-1:]
            if not done and end_of_topic(bootstrap) == ends[-1]:
                write_lines(1)  # the connector keeps lines in its buffer until the file grows
            ends.append(end_of_topic(bootstrap))
            return done

        ends = [0]
        kit.until(all_read, "all lines are in the topic")
        kit.until(
            lambda: target.exists() and target.read_text().endswith(f"{written[-1]}\n"), "all lines are in the file"
        )
        assert kit.read(bootstrap, TOPIC)[0] == written
        copied = target.read_text().splitlines()
        assert list(dict.fromkeys(copied)) == written  # a sink writes again what it had not committed
        return (
            f"distributed, exactly.once.source.support, {kills} kill -9 of the source's worker between its lines: "
            f"{len(written):,} lines in the topic, each once and in order; "
            f"the file sink has all in order, {len(copied) - len(written)} of them again after kills (at least once)"
        )


if __name__ == "__main__":
    kit.run("Kafka Connect", kit.version_in(HERE, "kafka.version"), prove)
