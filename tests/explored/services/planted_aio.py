"""Services with a bug each that a plain run does not show (aiokafka)."""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar

from aio_service import COUNT, Listener, Service, supervise
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, ProducerFenced

ORDERS = TopicPartition("orders", 0)
ALL = [f"order {number}" for number in range(COUNT)]


def bills(cluster):
    return [record.value.decode() for record in cluster.consume("bills", isolation="committed")]


def next_of(records):
    return {ORDERS: records[-1].offset + 1}


class Transactional(Service):
    transactional = True

    async def work(self, records):
        async with self.producer.transaction():
            for record in records:
                await self.producer.send_and_wait("bills", record.value)
            await self.producer.send_offsets_to_transaction(next_of(records), "billing")


class CommitInFinally(Transactional):
    async def work(self, records):
        try:
            async with self.producer.transaction():
                for record in records:
                    await self.producer.send_and_wait("bills", record.value)
        finally:
            await self.consumer.commit(next_of(records))


async def test_commit_in_finally(cluster):
    await supervise(CommitInFinally, cluster)
    assert sorted(set(bills(cluster))) == ALL


class RefusalIgnored(Service):
    producing = False

    async def work(self, records):
        for record in records:
            self.done.append(record.value.decode())
            with suppress(KafkaError):
                await self.consumer.commit({ORDERS: record.offset + 1})


async def test_refusal_ignored(cluster):
    done = []

    async def all_seen():
        return len(done) >= COUNT

    service = RefusalIgnored(cluster, done)
    await service.start()
    try:
        while not await all_seen():
            await service.work(await service.batch())
    finally:
        await service.stop()
    assert cluster.committed("billing") == {("orders", 0): COUNT}


class NoSeekAfterAbort(Transactional):
    async def work(self, records):
        with suppress(KafkaError):
            await super().work(records)


async def test_no_seek_after_a_failed_transaction(cluster):
    await supervise(NoSeekAfterAbort, cluster)
    assert bills(cluster) == ALL


class OffsetsOutside(Transactional):
    async def work(self, records):
        async with self.producer.transaction():
            for record in records:
                await self.producer.send_and_wait("bills", record.value)
        await self.consumer.commit(next_of(records))


async def test_offsets_outside_the_transaction(cluster):
    await supervise(OffsetsOutside, cluster)
    assert bills(cluster) == ALL


class NoAbort(Transactional):
    async def work(self, records):
        await self.producer.begin_transaction()
        for record in records:
            await self.producer.send_and_wait("bills", record.value)
        try:
            await self.producer.send_offsets_to_transaction(next_of(records), "billing")
        except KafkaError:
            self.consumer.seek(ORDERS, records[0].offset)
            return  # the transaction stays open
        await self.producer.commit_transaction()

    async def stop(self):
        with suppress(KafkaError):
            await self.consumer.stop()


async def test_abort_is_not_called(cluster):
    await supervise(NoAbort, cluster, seconds=4.0)
    assert bills(cluster) == ALL


class DropsAfterRebalance(Service):
    producing = False

    def listener(self):
        async def revoked(partitions):
            self.is_revoked = True

        self.is_revoked = False
        return Listener(revoked)

    async def work(self, records):
        self.is_revoked = False
        for record in records:
            self.done.append(record.value.decode())
            with suppress(KafkaError):
                await self.consumer.commit({ORDERS: record.offset + 1})
            if self.is_revoked:
                break  # the rest of the batch is not ours any more
        with suppress(KafkaError):
            await self.consumer.commit(next_of(records))  # but it is, again, and counts as done


async def test_poll_loop_drops_the_rest_of_a_batch(cluster):
    done = await supervise(DropsAfterRebalance, cluster, seconds=4.0)
    assert sorted(set(done)) == ALL


class SeeksToBeginning(Service):
    producing = False

    def listener(self):
        async def assigned(partitions):
            await self.consumer.seek_to_beginning(*partitions)

        return Listener(assigned=assigned)

    async def work(self, records):
        self.done += [record.value.decode() for record in records]
        await self.consumer.commit(next_of(records))


async def test_each_assignment_begins_at_the_beginning(cluster):
    done = await supervise(SeeksToBeginning, cluster)
    assert len(done) <= COUNT + 3  # a batch may come again


class CommitsPositionWhenRevoked(Service):
    producing = False

    def listener(self):
        async def revoked(partitions):
            if partitions:
                await self.consumer.commit()  # the position: what was polled, not what was worked on

        return Listener(revoked)

    async def work(self, records):
        for record in records:
            self.done.append(record.value.decode())
            await self.consumer.commit({ORDERS: record.offset + 1})


async def test_position_is_committed_when_revoked(cluster):
    done = await supervise(CommitsPositionWhenRevoked, cluster)
    assert sorted(set(done)) == ALL


class FencedIgnored(Transactional):
    async def work(self, records):
        try:
            await super().work(records)
        except ProducerFenced:
            self.consumer.seek(ORDERS, records[0].offset)  # with the same producer, for ever


async def test_fence_is_ignored(cluster):
    await supervise(FencedIgnored, cluster, seconds=3.0)
    assert bills(cluster) == ALL


class OutboxTwice(Service):
    async def work(self, records):
        for record in records:
            await self.producer.send_and_wait("bills", record.value)  # neither idempotent nor in a transaction
            self.done.append(record.value.decode())
        await self.consumer.commit(next_of(records))


async def test_outbox_is_sent_twice(cluster):
    await supervise(OutboxTwice, cluster)
    assert bills(cluster) == ALL


class AutoCommit(Service):
    settings: ClassVar = {"enable_auto_commit": True, "auto_commit_interval_ms": 1}
    transactional = True

    async def work(self, records):
        for record in records:
            await self.batch_of_nothing()
            async with self.producer.transaction():
                await self.producer.send_and_wait("bills", record.value)

    async def batch_of_nothing(self):
        self.consumer.pause(ORDERS)
        await self.consumer.getmany(timeout_ms=1)  # keeps the member alive, and commits what was polled
        self.consumer.resume(ORDERS)


async def test_offsets_are_committed_by_themselves_before_the_work(cluster):
    await supervise(AutoCommit, cluster)
    assert sorted(set(bills(cluster))) == ALL


class ReadsUncommitted(Transactional):
    """Bills are right, and who reads them is not."""


async def test_reader_sees_what_was_aborted(cluster):
    await supervise(ReadsUncommitted, cluster)
    assert [record.value.decode() for record in cluster.consume("bills")] == ALL
