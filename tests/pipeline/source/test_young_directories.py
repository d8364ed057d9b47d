"""Jobs that read the directory of a broker in its first minutes, while clients write, make topics and remove them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest
from apache_kafka import apache_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from job_kit import parsed

from momus import Broker
from pipeline.input_check import check_input
from pipeline.jobs.registry import JOBS
from pipeline.local.run import run_locally

LOCAL = ("offsets", "lag", "resets", "coverage", "audit")
SPARK = ("archive", "compaction", "report")
WORDS = {"archive": ("--topics", "*")}
SHORT, LONG = 2, 4  # rounds; the short form leaves out the jobs that Spark alone runs: minutes beside such load
QUICK = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "log.cleaner.backoff.ms": 100,
}
OF_KAFKA = "group.initial.rebalance.delay.ms=0\nlog.cleaner.backoff.ms=100\nfile.delete.delay.ms=1000\n"
SMALL = {"segment.bytes": "1048576", "file.delete.delay.ms": "500"}  # Apache Kafka's least
COMPACTED = {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"}


def write_for_ever(address: str, begun: threading.Event, ended: threading.Event) -> None:
    """Records of three topics, transactions, commits; a topic that is made and removed again and again."""
    conf = {"bootstrap.servers": address, "log_level": 0}
    admin = AdminClient(conf)
    for made in admin.create_topics(
        [NewTopic("orders", 3, 1, config=SMALL), NewTopic("keyed", 2, 1, config=COMPACTED), NewTopic("never", 2, 1)]
    ).values():
        made.result(60)
    begun.set()
    producer = Producer({**conf, "transactional.id": "young", "linger.ms": 0})
    producer.init_transactions(60)
    consumer = Consumer({**conf, "group.id": "young", "enable.auto.commit": False})
    number = -1
    while not ended.is_set():
        number += 1
        for made in admin.create_topics([NewTopic("passing", 2, 1)]).values():
            with_patience(made)
        producer.begin_transaction()
        for n in range(40):
            producer.produce("orders", b"x" * 5000, partition=n % 3)
            producer.produce("keyed", b"y" * 3000, key=b"%d" % (n % 5), partition=n % 2)
        consumer_at = [TopicPartition("orders", n, number * 5) for n in range(3)] + [TopicPartition("never", 0, 0)]
        producer.send_offsets_to_transaction(consumer_at, consumer.consumer_group_metadata())
        producer.flush(60)  # librdkafka skips the sequences of records that an abort purges
        (producer.abort_transaction if number % 3 == 2 else producer.commit_transaction)(60)
        consumer.commit(offsets=[TopicPartition("orders", 0, number)], asynchronous=False)
        write_in_passing(conf, number)
        for removed in admin.delete_topics(["passing"]).values():
            with_patience(removed)
    consumer.close()


def write_in_passing(conf: dict[str, object], number: int) -> None:
    """A transaction over the topic that is removed next, of a producer that has no other."""
    producer = Producer({**conf, "transactional.id": f"passing-{number % 5}"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for n in range(2):
        producer.produce("passing", b"z", partition=n)
    producer.commit_transaction(60)


def with_patience(made) -> None:
    """A topic that is just being removed cannot be made: the next round does."""
    error = made.exception(60)
    expected = ("TOPIC_ALREADY_EXISTS", "UNKNOWN_TOPIC_OR_PART")
    if error is not None and not (isinstance(error, KafkaException) and error.args[0].name() in expected):
        raise error


@contextmanager
def broker_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Path]]:
    """The address and the directory of a new broker."""
    if kind == "kafka":
        with apache_kafka(request.getfixturevalue("kafka_libs"), folder, OF_KAFKA) as address:
            yield address, folder / "logs"
    else:
        with Broker(data_dir=folder / "logs", config=QUICK) as broker:
            yield broker.bootstrap_servers, folder / "logs"


@pytest.mark.parametrize("kind", ["momus", "kafka"])
def test_every_job_reads_the_directory_of_a_new_broker_under_load(kind, request, tmp_path, capsys):
    is_long = request.config.getoption("--pipeline-long")
    wanted = (*LOCAL * 4, *(SPARK if is_long else ()))
    assert {*LOCAL, *SPARK} == {*JOBS} - {"migrate", "bridge"}, "these two want a cluster to write to"
    begun, ended, runs = threading.Event(), threading.Event(), Counter()
    with broker_of(kind, request, tmp_path) as (address, folder):
        load = threading.Thread(target=write_for_ever, args=(address, begun, ended))
        load.start()
        try:
            assert begun.wait(120)
            for _ in range(LONG if is_long else SHORT):
                for name in wanted:
                    job = import_module(f"pipeline.jobs.{name}")
                    args = parsed(job, folder, tmp_path / f"{name}-{sum(runs.values())}", *WORDS.get(name, ()))
                    check_input(args.input)
                    in_spark = name in SPARK
                    code = job.run(request.getfixturevalue("spark"), args) if in_spark else run_locally(job, args)
                    assert code == 0, f"{name}, run {sum(runs.values())}: {capsys.readouterr().out[-2000:]}"
                    runs[name] += 1
            assert load.is_alive(), "the load has ended early"
        finally:
            ended.set()
            load.join(120)
    assert runs.keys() == set(wanted)
