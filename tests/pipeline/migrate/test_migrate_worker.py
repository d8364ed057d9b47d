"""What a task does for one partition, without Spark: killed again and again, it goes on where it was."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from source_broker import T0, read, settings

from momus import Broker
from pipeline.migrate.worker import comparer, copier, reader

COUNT = 3000
PLACE = ("t", 0)


def rows(count: int = COUNT) -> list[Any]:
    """Records as Spark hands them over, with gaps between their offsets."""
    return [
        SimpleNamespace(
            log="t-0",
            topic="t",
            partition=0,
            offset=3 * n,
            timestamp_ms=T0 + n,
            key=bytearray(b"k%d" % n) if n % 7 else None,
            value=bytearray(b"v%d" % n) if n % 10 else None,
            headers=[SimpleNamespace(key="h", value=None if n % 2 else bytearray(b"x"))] if n % 3 else [],
        )
        for n in range(count)
    ]


def killed_at(address: str, number: int, written: int) -> None:
    """Copies until so many records were taken and so many are there, and is killed."""

    def dying() -> Iterator[Any]:
        for n, row in enumerate(rows()):
            if n == number:
                look = Consumer({**settings(address), "group.id": "look"})
                while look.get_watermark_offsets(TopicPartition(*PLACE), timeout=10)[1] < written:
                    pass
                os.kill(os.getpid(), signal.SIGKILL)
            yield row

    list(copier(settings(address))(dying()))


@pytest.fixture
def target() -> Iterator[str]:
    with Broker() as broker:
        admin = AdminClient(settings(broker.bootstrap_servers))
        admin.create_topics([NewTopic("t", 1, 1, config={"retention.ms": "-1"})])["t"].result(20)
        yield broker.bootstrap_servers


def test_copier_killed_twice_goes_on_without_a_loss_or_a_double(target):
    spawn = multiprocessing.get_context("spawn")
    for number, written in ((700, 350), (2000, 1000)):
        child = spawn.Process(target=killed_at, args=(target, number, written))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        assert written <= len(read(target, *PLACE)) < COUNT

    [copied] = copier(settings(target))(rows())

    assert copied.error is None
    assert copied.already >= 1000
    assert copied.already + copied.written == COUNT
    there = read(target, *PLACE)
    assert [at for at, *_ in there] == [T0 + n for n in range(COUNT)]
    assert there[1] == (T0 + 1, b"k1", b"v1", [("h", None)])
    [compared] = comparer(settings(target))(rows())
    assert (compared.difference, compared.source_sha256) == (None, compared.target_sha256)


def test_copier_target_that_differs_in_one_record_is_refused_and_not_equal(target):
    list(copier(settings(target))(rows(20)))
    other = rows(20)
    other[17].value = bytearray(b"other")

    [copied] = copier(settings(target))(other)
    [compared] = comparer(settings(target))(other)

    assert copied.error == "t-0 of the target holds something else: its record 17 is not the source's at offset 51"
    assert compared.difference == "offset 17 is not the source's record at offset 51"
    assert compared.source_sha256 != compared.target_sha256


def test_copier_target_with_more_than_the_source_is_refused(target):
    list(copier(settings(target))(rows(20)))
    [copied] = copier(settings(target))(rows(10))
    [compared] = comparer(settings(target))(rows(10))
    assert copied.error == "t-0 of the target has 20 records, the source only 10"
    assert (compared.records, compared.target_records) == (10, 20)
    assert compared.difference == "the record at offset 10 is not the source's"


def test_source_is_hashed_as_it_is_copied_and_again_as_it_is_skipped(target):
    [first] = copier(settings(target))(rows(20))
    [again] = copier(settings(target))(rows(30))
    [compared] = comparer(settings(target))(rows(30))
    [held] = reader(settings(target))([("t-0", *PLACE)])

    assert (again.already, again.written) == (20, 10)
    assert first.source_sha256 != again.source_sha256 == compared.source_sha256 == held.sha256
    assert (held.log, held.records, held.is_dense) == ("t-0", 30, True)


def test_markers_in_the_target_take_offsets_and_are_seen(target):
    producer = Producer({**settings(target), "transactional.id": "one"})
    producer.init_transactions()
    for value in (b"1", b"2"):
        producer.begin_transaction()
        producer.produce(PLACE[0], value, partition=PLACE[1])
        producer.commit_transaction()

    [held] = reader(settings(target))([("t-0", *PLACE)])

    assert (held.records, held.is_dense) == (2, False)
