"""`momus group seek --dry-run` and kafka-consumer-groups --reset-offsets: the same offsets for each word."""

from __future__ import annotations

import csv
import json

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata
from momus_command import run_momus

# One worker: one JVM runs all the tools.
pytestmark = pytest.mark.xdist_group("java")

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
BASE_MS = 1_700_000_000_000
WORDS = (
    "--to-earliest",
    "--to-latest",
    "--to-current",
    "--to-offset 3",
    "--to-offset 300",
    "--shift-by 2",
    "--shift-by -100",
    "--shift-by 100",
    "--to-datetime 2023-11-14T22:13:24.500",
    "--to-datetime 2023-11-14T22:13:24.000",
    "--to-datetime 2023-11-14T23:13:24.000+01:00",
    "--to-datetime 2040-01-01T00:00:00.000",
    "--by-duration P3650D",
    "--by-duration PT1H",
    "--from-file {file}",
)


@pytest.fixture(scope="module")
def group(trio, tmp_path_factory):
    """Two topics of ten records a second apart, the first three of one deleted; some of it committed."""
    file = tmp_path_factory.mktemp("plan") / "plan.csv"
    file.write_text("seek-a,0,8\nseek-b,1,999\n")
    address = trio.bootstrap_servers
    for topic in ("seek-a", "seek-b"):
        trio.create_topic(topic, partitions=2)
        lines = [json.dumps({"value": "v", "partition": n % 2, "timestamp_ms": BASE_MS + n * 1000}) for n in range(20)]
        run_momus("produce", "-t", topic, "--json", "-b", address, data="\n".join(lines))
    consumer = KafkaConsumer(group_id="seeking", enable_auto_commit=False, **trio.client_config("kafka-python"))
    places = {("seek-a", 0): 4, ("seek-a", 1): 10, ("seek-b", 1): 1}
    consumer.commit({TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in places.items()})
    consumer.close()
    return str(file)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("scope", ["--all-topics", "--topic seek-a:0,1", "--topic seek-a"])
def test_plan_is_that_of_kafkas_tool(toolbox, trio, group, word, scope):
    words = [each.replace("{file}", group) for each in word.split()]
    scopes = [] if "--from-file" in word else scope.split()
    code, printed = toolbox.run(
        GROUPS,
        "--bootstrap-server",
        trio.bootstrap_servers,
        "--group",
        "seeking",
        "--reset-offsets",
        "--dry-run",
        "--export",
        *scopes,
        *words,
    )
    assert code == 0, printed
    theirs = {
        tuple(row) for row in csv.reader(line for line in printed.splitlines() if line.startswith(('"', "seek-")))
    }
    ours = run_momus("group", "seek", "seeking", "--dry-run", "--export", *scopes, *words, "-b", trio.bootstrap_servers)
    assert ours.returncode == 0, ours.stderr
    assert {tuple(row) for row in csv.reader(ours.stdout.splitlines())} == theirs
    assert theirs
