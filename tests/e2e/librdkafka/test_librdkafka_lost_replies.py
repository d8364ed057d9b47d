"""librdkafka's idempotent producer while replies are withheld and lost and the broker is killed: nothing twice."""

from __future__ import annotations

import pytest
from budget import short_and_slow
from confluent_kafka import Producer
from lost_replies import BATCHES, RECORDS, SEEDS, SMALL, write_each_record_once


@pytest.mark.parametrize("batch_bytes", short_and_slow(BATCHES.values(), 1), ids=BATCHES)
@pytest.mark.parametrize("seed", short_and_slow(range(SEEDS), 1))
def test_each_record_is_there_once_and_in_order(tmp_path, name, seed, batch_bytes):
    records = RECORDS if seed else RECORDS // 3

    def write(address):
        # As Java; librdkafka's own limit is 10 s, and with 5,000 records a connection that has taken ten minutes
        direct = {"bootstrap.servers": address, "log_level": 0, "reconnect.backoff.max.ms": 1000}
        failed = []
        settings = {} if batch_bytes == BATCHES["defaults"] else {"batch.size": batch_bytes}
        producer = Producer({**direct, **settings, "enable.idempotence": True, "queue.buffering.max.messages": 5_000})
        for number in range(records):
            while True:
                try:
                    producer.produce(name, SMALL % number, on_delivery=lambda error, _: error and failed.append(error))
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(300) == 0
        assert failed == []

    write_each_record_once(write, name, seed, tmp_path / "data", records, reply_bytes=(700, 1_500))
