"""Apache Kafka's DumpLogSegments on what lies beside a partition's log: producers and aborted transactions."""

from __future__ import annotations

from pathlib import Path

import pytest
from clientwork import LIMIT_S
from confluent_kafka import Producer

pytestmark = pytest.mark.xdist_group("java")

DUMP = "org.apache.kafka.tools.DumpLogSegments"


def test_kafka_reads_the_snapshot_and_the_transaction_index(broker_factory, toolbox, tmp_path, name):
    with broker_factory(data_dir=str(tmp_path)) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name})
        producer.init_transactions(LIMIT_S)
        for end in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            producer.produce(name, b"a", partition=0)
            producer.flush(LIMIT_S)
            end(LIMIT_S)
        assert broker.stop() == 0
    (folder,) = Path(tmp_path).glob(f"{name}-0")
    (snapshot,) = folder.glob("*.snapshot")
    (index,) = folder.glob("*.txnindex")
    code, printed = toolbox.run(DUMP, "--files", f"{snapshot},{index}")
    assert code == 0, printed
    assert "producerId: 0 producerEpoch:" in printed
    assert "lastSequence: " in printed
    assert "version: 0 producerId: 0 firstOffset: 2 lastOffset: 3 lastStableOffset: 4" in printed
