"""Java's share consumers and Kafka's tools for share groups, unmodified, against the broker."""

from __future__ import annotations

import subprocess
import threading
from collections import Counter

import pytest
from clientwork import LIMIT_S, until
from java_checks import JVM, compiled

pytestmark = pytest.mark.xdist_group("java")

TOOLS = "org.apache.kafka.tools."
TOPICS = TOOLS + "TopicCommand"
PRODUCER = TOOLS + "ConsoleProducer"
CONSUMER = TOOLS + "consumer.ConsoleShareConsumer"
READER = TOOLS + "consumer.ConsoleConsumer"
GROUPS = TOOLS + "consumer.group.ShareGroupCommand"
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
RECORDS, MEMBERS = 200, 8


@pytest.fixture(scope="session")
def share_classes(kafka_libs):
    """Share consumers with explicit acknowledgement."""
    return compiled(kafka_libs, "Shares")


class Said:
    """A process, and the lines that it has printed so far. Its standard input ends with the block, and it with that."""

    def __init__(self, command):
        self.lines = []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        self.lines.extend(line.strip("\n") for line in self.process.stdout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        self._reader.join(60)
        self.process.stdin.close()
        self.process.stdout.close()


def lag(toolbox, broker, group):
    """What is left of each partition of a share group."""
    words = ("--describe", "--group", group, "--offsets", "--bootstrap-server", broker.bootstrap_servers)
    return [line.split()[-1] for line in toolbox.run(GROUPS, *words)[1].splitlines() if group in line]


def from_the_beginning(tool, group):
    tool(
        CONFIGS,
        *(
            "--alter",
            "--entity-type",
            "groups",
            "--entity-name",
            group,
            "--add-config",
            "share.auto.offset.reset=earliest",
        ),
    )


def test_eight_members_share_one_partition(tool, shared_broker, share_classes, name):
    """Each record is accepted or rejected by one of them; what is released comes again, to any."""
    from_the_beginning(tool, name)
    tool(PRODUCER, "--topic", name, text="".join(f"{n}\n" for n in range(1, RECORDS + 1)))
    command = [*JVM, "-cp", share_classes, "Shares", shared_broker.bootstrap_servers, name, name]
    done = subprocess.run([*command, str(RECORDS), str(MEMBERS)], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    deliveries = [line.split() for line in done.stdout.splitlines()]
    numbers = range(1, RECORDS + 1)
    released = {n for n in numbers if n % 5 == 0 and n % 7}
    wanted = Counter({(n, 1 + (n in released)): 1 for n in numbers}) + Counter(
        dict.fromkeys(((n, 1) for n in released), 1)
    )
    assert Counter((int(number), int(count)) for _, number, count, _ in deliveries) == wanted, done.stderr
    assert len({member for member, *_ in deliveries}) > 1
    described = tool(GROUPS, "--describe", "--group", name, "--offsets")
    ((*_, lag),) = [line.split() for line in described.splitlines() if name in line]
    assert lag == "0"


def test_rejected_records_come_into_the_dead_letter_queue_of_the_group_with_copies(
    tool, shared_broker, share_classes, name
):
    """A consumer of the Java client reads there what another has rejected, headers and all."""
    queue = f"dlq.{name}"
    shared_broker.create_topic(queue, config={"errors.deadletterqueue.group.enable": "true"})
    from_the_beginning(tool, name)
    settings = f"errors.deadletterqueue.topic.name={queue},errors.deadletterqueue.copy.record.enable=true"
    tool(CONFIGS, "--alter", "--entity-type", "groups", "--entity-name", name, "--add-config", settings)
    tool(PRODUCER, "--topic", name, text="".join(f"{n}\n" for n in range(1, 31)))
    command = [*JVM, "-cp", share_classes, "Shares", shared_broker.bootstrap_servers, name, name, "30", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    words = ("--topic", queue, "--from-beginning", "--max-messages", "4", "--timeout-ms", "20000")
    printed = tool(READER, *words, "--formatter-property", "print.headers=true")
    found = [line.rsplit("\t", 1) for line in printed.splitlines() if line.startswith("__dlq")]
    assert sorted(int(value) for _, value in found) == [7, 14, 21, 28]
    for headers, value in found:
        assert dict(each.split(":", 1) for each in headers.split(",")) == {
            "__dlq.errors.topic": name,
            "__dlq.errors.partition": "0",
            "__dlq.errors.offset": str(int(value) - 1),
            "__dlq.errors.group": name,
            "__dlq.errors.delivery.count": "1",
            "__dlq.errors.message": "Offset rejected by client.",
        }


def test_dead_letters_are_read_beside_their_group_over_kills_of_the_broker(
    broker, toolbox, kafka_libs, share_classes, name
):
    """Each record comes to the group, and each that it rejects to who reads the queue, at least once."""
    queue, values = f"dlq.{name}", [str(number) for number in range(1, 401)]
    broker.create_topic(name, 2)
    broker.create_topic(queue, config={"errors.deadletterqueue.group.enable": "true"})
    settings = f"share.auto.offset.reset=earliest,errors.deadletterqueue.topic.name={queue}"
    settings += ",errors.deadletterqueue.copy.record.enable=true"
    words = ("--alter", "--entity-type", "groups", "--entity-name", name, "--add-config", settings)
    assert toolbox.run(CONFIGS, *words, "--bootstrap-server", broker.bootstrap_servers)[0] == 0
    servers = broker.bootstrap_servers
    reads = ("--topic", queue, "--from-beginning", "--formatter-property", "print.headers=true")
    with (
        Said([*JVM, "-cp", share_classes, "Shares", servers, name, name, "0", "2"]) as group,
        Said([*JVM, "-cp", kafka_libs, READER, *reads, "--bootstrap-server", servers]) as reader,
    ):
        for at in range(0, 400, 100):
            read = len(reader.lines)
            fault = None if at % 200 else broker.faults.fail_dead_letter("NOT_LEADER_OR_FOLLOWER")
            broker.produce(name, *values[at : at + 100], partition=at // 100 % 2)
            if fault is None:
                until(lambda read=read: len(reader.lines) > read, "dead letters are read")
            else:  # then it would try again a second later
                fault.wait_until_hit(timeout=LIMIT_S)
            broker.kill()
            broker.start()
        dead = {value for value in values if int(value) % 7 == 0}
        until(lambda: {line.rsplit("\t", 1)[-1] for line in reader.lines} >= dead, "all dead letters are read")
        until(lambda: lag(toolbox, broker, name) == ["0", "0"], "all records are accepted or rejected")
    told = [line.split() for line in group.lines]
    assert {number for _, number, _, _ in told} == set(values)
    assert {number for _, number, _, answer in told if answer == "reject"} == dead
    letters = [line.rsplit("\t", 1) for line in reader.lines]
    assert {value for _, value in letters} == dead
    origins = {value: set() for value in dead}
    for headers, value in letters:
        found = dict(each.split(":", 1) for each in headers.split(","))
        origins[value].add((found["__dlq.errors.partition"], found["__dlq.errors.offset"]))
        assert (found["__dlq.errors.topic"], found["__dlq.errors.group"]) == (name, name)
    assert all(len(places) == 1 for places in origins.values())


def test_console_consumer_accepts_what_the_console_producer_wrote(tool, name):
    from_the_beginning(tool, name)
    tool(PRODUCER, "--topic", name, text="one\ntwo\n")
    words = ("--topic", name, "--group", name, "--max-messages", "2", "--timeout-ms", "20000")
    assert "one\ntwo\n" in tool(CONSUMER, *words)
    tool(PRODUCER, "--topic", name, text="three\n")
    assert "three\n" in tool(CONSUMER, "--topic", name, "--group", name, "--max-messages", "1", "--timeout-ms", "20000")


def test_groups_tool_lists_describes_resets_and_deletes(tool, name):
    from_the_beginning(tool, name)
    tool(PRODUCER, "--topic", name, text="one\ntwo\nthree\n")
    words = ("--topic", name, "--group", name, "--timeout-ms", "20000")
    tool(CONSUMER, *words, "--max-messages", "3")
    assert name in tool(GROUPS, "--list")
    assert f"{name}" in tool(GROUPS, "--describe", "--group", name, "--state")
    topic = ("--group", name, "--topic", name)
    printed = tool(GROUPS, "--reset-offsets", *topic, "--to-earliest", "--dry-run")
    assert printed.split()[-4:] == [name, name, "0", "0"]
    tool(GROUPS, "--reset-offsets", *topic, "--to-earliest", "--execute")
    assert "one\ntwo\nthree\n" in tool(CONSUMER, *words, "--max-messages", "3"), "they are read again"
    tool(GROUPS, "--delete-offsets", *topic)
    assert not [
        line for line in tool(GROUPS, "--describe", "--group", name, "--offsets").splitlines() if "3" in line.split()
    ]
    tool(GROUPS, "--delete", "--group", name)
    assert name not in tool(GROUPS, "--list")
