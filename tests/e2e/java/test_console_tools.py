"""Apache Kafka's own console tools, unmodified, against the broker."""

from __future__ import annotations

import subprocess

import pytest


@pytest.fixture
def tool(kafka_libs, broker):
    """Runs one of Kafka's command-line tools against a fresh broker and returns what it prints."""

    def run(main: str, *arguments: str, text: str = "") -> str:
        command = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", kafka_libs, main]
        command += [*arguments, "--bootstrap-server", broker.bootstrap_servers]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, f"{main} {' '.join(arguments)}\n{done.stdout}{done.stderr}\n{broker.log}"
        return done.stdout

    return run


TOPICS = "org.apache.kafka.tools.TopicCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def test_topic_tool_creates_describes_and_deletes(tool):
    tool(TOPICS, "--create", "--topic", "orders", "--partitions", "3", "--config", "retention.ms=1000")
    described = tool(TOPICS, "--describe", "--topic", "orders")
    assert "PartitionCount: 3" in described
    assert "retention.ms=1000" in described
    tool(TOPICS, "--delete", "--topic", "orders")
    assert "orders" not in tool(TOPICS, "--list").split()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_consumer_reads_what_the_console_producer_wrote(tool, codec):
    tool(PRODUCER, "--topic", "t", "--compression-codec", codec, text="one\ntwo\nthree\n")
    read = tool(CONSUMER, "--topic", "t", "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000")
    assert read.split() == ["one", "two", "three"]


def test_group_tool_shows_and_resets_what_a_group_committed(tool):
    tool(PRODUCER, "--topic", "t", text="one\ntwo\nthree\n")
    read = ("--topic", "t", "--group", "g", "--from-beginning", "--max-messages", "2", "--timeout-ms", "20000")
    tool(CONSUMER, *read, "--command-property", "max.poll.records=1")
    described = tool(GROUPS, "--describe", "--group", "g").split()
    assert described[described.index("t") + 1 :][:4] == ["0", "2", "3", "1"]  # partition, committed, end, lag
    tool(GROUPS, "--group", "g", "--topic", "t", "--reset-offsets", "--to-earliest", "--execute")
    described = tool(GROUPS, "--describe", "--group", "g").split()
    assert described[described.index("t") + 1 :][:4] == ["0", "0", "3", "3"]


def test_offsets_formatter_reads_the_offsets_topic(tool):
    tool(PRODUCER, "--topic", "t", text="one\n")
    tool(CONSUMER, "--topic", "t", "--group", "g", "--from-beginning", "--max-messages", "1", "--timeout-ms", "20000")
    printed = tool(
        CONSUMER,
        *("--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "4000"),
        *("--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"),
    )
    assert '"group":"g","topic":"t","partition":0' in printed
    assert '"offset":1' in printed
