"""librdkafka's idempotent producer while replies are withheld and lost: it is told the offset that each record has."""

from __future__ import annotations

import pytest
from budget import short_and_slow
from clientwork import LIMIT_S
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from fault_proxy import OVER_CUTS, FaultProxy
from read_back import read_back

RECORDS = 10_000


@pytest.mark.parametrize("seed", short_and_slow(range(10), 2))
def test_offsets_told_over_cut_connections_are_those_in_the_log(serve, name, seed):
    limits = {"least_bytes": 100_000, "most_bytes": 400_000, "reply_bytes": (1_200, 2_500), "withheld_s": 0.2}
    with FaultProxy(seed, **limits) as proxy:
        host, port = proxy.address
        proxy.target = serve(f"{host}:{port}")
        direct = {"bootstrap.servers": f"{host}:{port}", "log_level": 0}
        admin = AdminClient(direct)
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(LIMIT_S)
        told: dict[int, object] = {}
        producer = Producer({**direct, **OVER_CUTS})
        for number in range(RECORDS):
            producer.produce(
                name,
                b"%0100d" % number,
                on_delivery=lambda error, message, number=number: told.update({number: error or message.offset()}),
            )
            producer.poll(0)
        assert producer.flush(300) == 0
        cuts = proxy.cuts
        proxy.calm()
        values, end = read_back(f"{host}:{port}", name, RECORDS)
    assert cuts > 5
    assert told == {number: number for number in range(RECORDS)}
    assert values == [b"%0100d" % number for number in range(RECORDS)]
    assert end == RECORDS
