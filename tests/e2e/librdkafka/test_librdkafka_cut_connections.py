"""librdkafka's idempotent producer, at its own limit of five requests in flight, over connections that are cut."""

from __future__ import annotations

import pytest
from budget import slow
from clientwork import LIMIT_S
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from fault_proxy import OVER_CUTS, FaultProxy
from read_back import read_back


@pytest.mark.parametrize(("state", "records"), [("latest", 5_000), slow("latest", 20_000), slow("batches", 20_000)])
def test_all_records_are_there_once_and_in_order(serve, name, state, records):
    with FaultProxy(3, least_bytes=5_000, most_bytes=60_000) as proxy:
        host, port = proxy.address
        proxy.target = serve(f"{host}:{port}", producer_state=state)
        direct = {"bootstrap.servers": f"{host}:{port}", "log_level": 0}
        admin = AdminClient(direct)
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(LIMIT_S)
        failed = []
        producer = Producer({**direct, **OVER_CUTS})
        for number in range(records):
            producer.produce(name, b"%0100d" % number, on_delivery=lambda error, _: error and failed.append(error))
            producer.poll(0)
        assert producer.flush(300) == 0
        assert failed == []
        cuts = proxy.cuts
        proxy.calm()
        values, end = read_back(f"{host}:{port}", name, records)
    assert cuts > 5
    assert values == [b"%0100d" % number for number in range(records)]
    assert end == records
