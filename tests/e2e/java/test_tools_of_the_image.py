"""Kafka's tools of the container image and Apache Kafka's own, each on a broker of its own: the same lines.

What is left out of Apache Kafka's: stack traces, the help after an error, and what its client says of itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
from kafka_tool import run_tool

from momus import Broker

# One worker: one JVM runs all the tools.
pytestmark = pytest.mark.xdist_group("java")

TOOLS = "org.apache.kafka.tools."
CLASSES = {
    "kafka-acls": "AclCommand",
    "kafka-configs": "ConfigCommand",
    "kafka-console-consumer": "consumer.ConsoleConsumer",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-consumer-groups": "consumer.group.ConsumerGroupCommand",
    "kafka-get-offsets": "GetOffsetShell",
    "kafka-topics": "TopicCommand",
}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
# One after the other, as somebody would type them: the tool without `kafka-`, its words; @ is standard input.
STEPS = """\
topics --create --topic orders --partitions 3
topics --create --topic orders
topics --create --topic orders --if-not-exists
topics --create --topic kept --config cleanup.policy=compact --config retention.ms=1000
topics --alter --topic orders --partitions 4
topics --alter --topic orders --partitions 4
topics --alter --topic nothing --partitions 4
topics --alter --topic nothing --partitions 4 --if-exists
topics --describe --topic kept
topics --describe --topic nothing
topics --describe --topic orders --under-replicated-partitions
topics --list --exclude-internal
topics --list --topic or.*
topics --list --wrong
topics --create
configs --describe --entity-type topics --entity-name kept
configs --alter --entity-type topics --entity-name kept --add-config retention.ms=2000,segment.bytes=1048576
configs --alter --topic kept --delete-config retention.ms
configs --describe --topic kept
configs --describe --topic kept --all
configs --describe --topic nothing
configs --alter --entity-type topics --entity-name kept
configs --alter --entity-type brokers --entity-name 1 --add-config message.max.bytes=2000000
configs --alter --entity-type brokers --entity-default --add-config log.retention.ms=2000000
configs --describe --entity-type brokers
configs --alter --entity-type users --entity-name alice --add-config SCRAM-SHA-256=[iterations=4096,password=x]
configs --alter --entity-type users --entity-name alice --add-config producer_byte_rate=1024,consumer_byte_rate=5
configs --alter --entity-type users --entity-default --add-config producer_byte_rate=99
configs --alter {both} --add-config producer_byte_rate=7
configs --describe --entity-type users
configs --describe --user alice --client c
configs --alter --entity-type users --entity-name alice --delete-config SCRAM-SHA-256
configs --describe --entity-type users --entity-name alice
configs --alter --entity-type groups --entity-name g1 --add-config consumer.session.timeout.ms=50000
configs --describe --entity-type groups --entity-name g1
console-producer --topic orders {keyed} --reader-property key.separator=: @k1:v1\\nk2:v2\\nk3:v3\\n
console-producer --topic kept {keyed} --reader-property parse.headers=true @h1:x,h2:y\\tk\\tv\\n
console-producer --topic orders --wrong 1 @
console-consumer --topic orders --from-beginning --max-messages 3 --timeout-ms 20000
console-consumer --topic kept --partition 0 --offset 0 --max-messages 1 {printed}
console-consumer --topic orders --group g1 --from-beginning --max-messages 2
consumer-groups --list
consumer-groups --list --state
consumer-groups --list --type --state
consumer-groups --describe --group g1
consumer-groups --describe --group g1 --state
consumer-groups --describe --group g1 --members
consumer-groups --describe --group g1 --members --verbose
consumer-groups --describe --group nobody
consumer-groups --reset-offsets --group g1 --topic orders --to-earliest --dry-run
consumer-groups --reset-offsets --group g1 --topic orders:1 --to-offset 1 --execute
consumer-groups --reset-offsets --group g1 --all-topics --to-latest --dry-run --export
consumer-groups --delete-offsets --group g1 --topic orders:0
consumer-groups --delete --group g1
consumer-groups --delete --group g1
get-offsets --topic orders
get-offsets --topic orders --time earliest
get-offsets --topic-partitions orders:0,orders:2-
get-offsets --exclude-internal-topics
get-offsets --topic nothing
acls --add --allow-principal User:alice --operation Read --operation Describe --topic orders
acls --add --allow-principal User:bob --producer --topic orders
acls --add --allow-principal User:bob --consumer --topic orders --group g1
acls --add --deny-principal User:eve --deny-host 10.0.0.1 --operation All --topic pre --resource-pattern-type prefixed
acls --add --allow-principal User:u --operation Write --group x
acls --add --topic x
acls --list --topic orders --principal User:alice
acls --list --topic pre1 --resource-pattern-type match
acls --list
acls --remove --allow-principal User:alice --operation Read --topic orders --force
acls --remove --topic pre --resource-pattern-type prefixed --force
acls --list
topics --delete --topic nothing
topics --delete --topic or.*
topics --list --exclude-internal
"""
PRINTED = " ".join(f"--formatter-property print.{each}=true" for each in ("headers", "key", "offset", "partition"))
BOTH = "--entity-type users --entity-name alice --entity-type clients --entity-name c"
# Of Apache Kafka's alone: where the help begins, and what no script looks for.
HELP = re.compile(r"Option  +Description|^Usage:")
NOISE = re.compile(
    r"^at |^Caused by|^\S*(java\.|joptsimple|org\.apache\.kafka\.\S*Exception)|main ERROR|rebalance protocol|^\s*$"
    r"|exit [01]$|^Tools\$Exited|^console-consumer-\d+"  # of the harness; and a consumer without a group has none here
)


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Broker, Broker]]:
    """One broker for each side."""
    with Broker(config=SETTINGS) as theirs, Broker(config=SETTINGS) as ours:
        yield theirs, ours


def lines(printed: str, broker: Broker) -> list[str]:
    """What scripts may look for. Ids and addresses differ; the order of ACLs and groups is nobody's choice."""
    found = HELP.split(printed, maxsplit=1)[0].replace(broker.bootstrap_servers, "HOST:PORT")
    port = broker.bootstrap_servers.rpartition(":")[2]
    found = re.sub(
        rf"(TopicId: )\S+|({port})|^kafka-[a-z-]+: ", lambda m: f"{m[1]}ID" if m[1] else "", found, flags=re.MULTILINE
    )
    told = [
        line.replace("is not a recognized option here", "is not a recognized option") for line in found.splitlines()
    ]
    told = [line.removeprefix("--") if "recognized" in line else line for line in told]
    told = [re.sub(r"\[(.*)\]", lambda m: str(sorted(m[1].split(", "))), " ".join(line.split())) for line in told]
    return sorted(line for line in told if not NOISE.search(line))


def test_tools_of_the_image_print_what_apache_kafkas_print(toolbox, pair):
    theirs, ours = pair
    different = []
    for step in STEPS.format(printed=PRINTED, keyed="--reader-property parse.key=true", both=BOTH).splitlines():
        text, at, data = step.partition(" @")
        tool, *words = shlex.split(text)
        given = data.encode().decode("unicode_escape") if at else ""
        name = f"kafka-{tool}"
        code, printed = toolbox.run(
            TOOLS + CLASSES[name], *words, "--bootstrap-server", theirs.bootstrap_servers, text=given
        )
        done = run_tool(name, *words, "--bootstrap-server", ours.bootstrap_servers, data=given)
        if (code, lines(printed, theirs)) != (done.returncode, lines(done.stdout, ours)):
            different.append(f"{step}\n  Apache Kafka: {code}\n{printed}\n  here: {done.returncode}\n{done.stdout}")
    assert not different, "\n".join(different)
