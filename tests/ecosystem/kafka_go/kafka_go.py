"""kafka-go: writes, reads in a consumer group with commits, over a kill -9 of the broker, and asks for the offsets."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above

TOPIC, GROUP, PARTITIONS = "records", "readers", 2
HALF = 1000


def program() -> Path:
    """The compiled Go program; go.sum has the hashes of what it is made of."""
    made = kit.edition(HERE, "main.go", "go.mod", "go.sum") / "kafka_go"
    if not made.exists():
        kit.fetch(("go", "build", "-mod=readonly", "-o", made, "."), cwd=HERE)
    return made


def members(bootstrap: str) -> int:
    """How many members of the group have a partition."""
    group = kit.admin(bootstrap).describe_consumer_groups([GROUP])[GROUP].result(60)
    return sum(bool(member.assignment and member.assignment.topic_partitions) for member in group.members)


def expected(first: int, last: int) -> list[list[str]]:
    """What each partition holds of these records."""
    return [[f"record {n}" for n in range(first, last) if n % PARTITIONS == p] for p in range(PARTITIONS)]


def by_partition(*outputs: str) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in range(PARTITIONS)]
    for line in "".join(outputs).splitlines():
        partition, _, value = line.partition(" ")
        found[int(partition)].append(value)
    return found


def prove() -> str:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(Broker())
        bootstrap = broker.bootstrap_servers
        kit.make_topic(bootstrap, TOPIC, PARTITIONS)
        binary = program()

        def run(verb: str, *words: object) -> str:
            command = [str(word) for word in (binary, verb, bootstrap, TOPIC, *words)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=kit.LIMIT_S)
            assert done.returncode == 0, done.stderr
            return done.stdout

        run("produce", 0, HALF)
        assert kit.read(bootstrap, TOPIC, PARTITIONS) == expected(0, HALF)
        before = run("consume", GROUP, HALF * 6 // 10)
        broker.kill()
        broker.start()
        assert sum(map(len, by_partition(before, run("consume", GROUP, HALF * 4 // 10)))) == HALF
        assert by_partition(run("offsets", GROUP, PARTITIONS)) == [[str(HALF // PARTITIONS)]] * PARTITIONS
        logs = [folder / f"member-{number}" for number in range(PARTITIONS)]
        for log in logs:
            stack.enter_context(kit.Program((binary, "consume", bootstrap, TOPIC, GROUP, 0), log))
        kit.until(lambda: members(bootstrap) == PARTITIONS, "each member has a partition")
        run("produce", HALF, 2 * HALF)

        def read() -> list[list[str]]:
            return by_partition(*(re.sub(r"[^\n]*\Z", "", log.read_text()) for log in logs))

        kit.until(lambda: sum(map(len, read())) >= HALF, "the members read all")
        assert read() == expected(HALF, 2 * HALF)
        ends = [[str(2 * HALF // PARTITIONS)]] * PARTITIONS
        kit.until(lambda: by_partition(run("offsets", GROUP, PARTITIONS)) == ends, "all is committed")
    return (
        f"{2 * HALF:,} records written, read by a consumer group of one member, then two, and committed one by one, "
        "over a kill -9 of the broker: each once and in order; OffsetFetch gives each partition's end"
    )


if __name__ == "__main__":
    found = re.search(r"kafka-go v(\S+)", (HERE / "go.mod").read_text())
    assert found
    kit.run("kafka-go", found[1], prove)
