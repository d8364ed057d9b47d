"""The shortcut of AddPartitionsToTxn and AddOffsetsToTxn learns each producer of a connection by itself."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from core_broker import Client, World, frame, make_topic
from txn_kit import Producer

from protocol.api import ApiKey
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)


@pytest.mark.parametrize("api_key", [ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN])
def test_producers_that_share_a_connection_are_served_from_the_second_request_on(api_key):
    client = Client(World("os"))
    make_topic(client)
    other = Client(client.world)  # their other requests
    producers = [Producer(other, name, v2=False) for name in ("a", "b")]
    assert [producer.init() for producer in producers] == [0, 0]
    shortcuts = client.world.broker.clients.shortcuts
    taken: list[bool] = []

    def counted(shortcut: Any, *args: Any) -> bytes | None:
        reply = shortcut(*args)
        taken.append(reply is not None)
        return reply

    shortcuts[api_key] = partial(counted, shortcuts[api_key])
    for _ in range(3):
        client.send_bytes(b"".join(frame(request_of(producer, api_key), 3) for producer in producers * 2))
        client.world.run()
        assert [producer.end() for producer in producers] == [0, 0]
    assert taken[4:] == [True] * 8


def request_of(producer: Producer, api_key: int) -> Any:
    if api_key == ApiKey.ADD_OFFSETS_TO_TXN:
        return AddOffsetsToTxnRequest(
            transactional_id=producer.name, producer_id=producer.id, producer_epoch=producer.epoch, group_id="g"
        )
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.name,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
