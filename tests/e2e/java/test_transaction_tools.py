"""Apache Kafka's own tools on transactions: they read our log, list, describe, find what hangs and end it."""

from __future__ import annotations

import json
import re

import pytest
from clientwork import LIMIT_S
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = pytest.mark.xdist_group("java")

TOOLS = "org.apache.kafka.tools."
TRANSACTIONS = TOOLS + "TransactionsCommand"
DUMP = TOOLS + "DumpLogSegments"
CONSUMER = TOOLS + "consumer.ConsoleConsumer"
OFFSETS = TOOLS + "GetOffsetShell"

# As the tools of 4.4 name them: a transaction that was committed, and one that was aborted.
STATES = ["Empty", "Ongoing", "Ongoing", "PrepareCommit", "CompleteCommit", "Ongoing", "PrepareAbort", "CompleteAbort"]


def rows(printed: str) -> list[list[str]]:
    """What stands under the heading of a table."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    headings = [at for at, words in enumerate(lines) if words[0] in ("TransactionalId", "ProducerId", "CoordinatorId")]
    return lines[headings[0] + 1 :] if headings else []


@pytest.fixture
def transactions(toolbox, shared_broker):
    """Runs kafka-transactions; its table."""

    def run(*words):
        code, printed = toolbox.run(TRANSACTIONS, "--bootstrap-server", shared_broker.bootstrap_servers, *words)
        assert code == 0, printed
        return rows(printed)

    return run


def objects(printed):
    """The JSON objects in a text, one right behind the other."""
    position = printed.find("{")
    while position >= 0:
        found, end = json.JSONDecoder().raw_decode(printed, position)
        yield found
        position = printed.find("{", end)


def transact(broker, name):
    """A producer that has committed a transaction with offsets, and has another one open."""
    basics = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    admin = AdminClient(basics)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(LIMIT_S)
    made = Producer({**basics, "transactional.id": name})
    made.init_transactions(LIMIT_S)
    group = Consumer({**basics, "group.id": name})
    made.begin_transaction()
    made.produce(name, b"committed")
    made.send_offsets_to_transaction([TopicPartition(name, 0, 1)], group.consumer_group_metadata(), LIMIT_S)
    made.commit_transaction(LIMIT_S)
    group.close()
    made.begin_transaction()
    made.produce(name, b"open")
    made.flush(LIMIT_S)
    return made


@pytest.fixture
def producer(shared_broker, name):
    """Against the module's broker."""
    return transact(shared_broker, name)


def test_tools_list_and_describe_transactions(transactions, producer, name):
    listed = {row[0]: row[1:] for row in transactions("list")}
    assert listed[name][-1] == "Ongoing"
    assert name not in {row[0] for row in transactions("list", "--duration-filter", "100000000")}
    (described,) = transactions("describe", "--transactional-id", name)
    assert f"{name}-0" in described
    assert "Ongoing" in described
    ((producer_id, epoch, *_),) = transactions("describe-producers", "--topic", name, "--partition", "0")
    assert producer_id == listed[name][1]
    assert epoch == "0"
    producer.abort_transaction(LIMIT_S)


def test_tools_end_a_transaction_that_hangs(transactions, producer, name):
    ((_, _, _, _, _, start, *_),) = transactions("describe-producers", "--topic", name, "--partition", "0")
    transactions("abort", "--topic", name, "--partition", "0", "--start-offset", start)
    left = transactions("describe-producers", "--topic", name, "--partition", "0")
    assert left[0][5] == "None"


def test_tools_read_the_coordinators_log_and_pass_over_records_of_ours(toolbox, broker_factory, name, tmp_path):
    broker = broker_factory(data_dir=str(tmp_path))
    transact(broker, name).abort_transaction(LIMIT_S)
    formatter = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
    at = ("--bootstrap-server", broker.bootstrap_servers)
    _, ends = toolbox.run(OFFSETS, *at, "--topic", "__transaction_state")
    count = sum(int(line.rpartition(":")[2]) for line in ends.splitlines())
    read = ("--topic", "__transaction_state", "--from-beginning", "--max-messages", str(count), "--timeout-ms", "60000")
    code, printed = toolbox.run(CONSUMER, *at, *read, "--formatter", formatter)
    assert code == 0, printed
    documents = list(objects(printed))
    found = [each["value"]["data"] for each in documents if each["key"]["data"]["transactionalId"] == name]
    assert [each["transactionStatus"] for each in found] == STATES
    assert broker.stop() == 0
    files = sorted(map(str, tmp_path.glob("__transaction_state-*/*.log")))
    code, printed = toolbox.run(DUMP, "--deep-iteration", "--transaction-log-decoder", "--files", ",".join(files))
    assert code == 0, printed
    assert re.findall(r'"transactionStatus":"(\w+)"', printed) == STATES
    assert printed.count("isvalid: true") == 8  # the record of ours lies in the batch of the decision
    assert "Unknown record type 1000 at offset 4, skipping." in printed
