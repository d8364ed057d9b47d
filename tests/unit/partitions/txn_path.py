"""Transactional work of clients against the data path, and a reader of committed records."""

from __future__ import annotations

from typing import Any

from unit.partitions.data_path import DataPath, batch

from protocol.record_batch import ABORT, TRANSACTIONAL, control_type, iter_batches, iter_records

V2, V1 = 12, 11  # versions of Produce that add partitions to transactions, and that do not
COMMITTED = {"isolation_level": 1}


def send(path: DataPath, *values: bytes, pid: int = 1, epoch: int = 0, seq: int = 0, **more: Any) -> Any:
    """One transactional batch; the partition's answer, or PARKED."""
    data = batch(*values, pid=pid, epoch=epoch, seq=seq, attributes=TRANSACTIONAL)
    return path.produce(data, version=more.pop("version", V2), transactional_id=f"tx-{pid}", **more)


def committed(path: DataPath, offset: int = 0, **more: Any) -> Any:
    return path.fetch(offset, request={**COMMITTED, **more})


def read_committed(path: DataPath) -> list[bytes | None]:
    """What a consumer of committed records gets, as Kafka's consumer filters it."""
    offset, values = 0, []
    while True:
        answer = committed(path, offset)
        if not len(answer.records):
            return values
        left = sorted((a.first_offset, a.producer_id) for a in answer.aborted_transactions)
        aborting: set[int] = set()
        data = answer.records.read()
        for position, header in iter_batches(data):
            while left and left[0][0] <= header.last_offset:
                aborting.add(left.pop(0)[1])
            offset = header.last_offset + 1
            for record in iter_records(data[position : position + header.size]):
                if header.is_control:
                    assert record.key is not None
                    if control_type(record.key) == ABORT:
                        aborting.discard(header.producer_id)
                elif not (header.is_transactional and header.producer_id in aborting):
                    values.append(record.value)


def stable(path: DataPath) -> int:
    return path.fetch().last_stable_offset
