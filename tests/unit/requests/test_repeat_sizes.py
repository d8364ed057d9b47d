"""How large a request may be whose repeats are served from its bytes."""

from __future__ import annotations

import pytest
from core_broker import Client, World, count_repeats, make_topic
from core_requests import commit_request

from broker.requests.repeated import MOST_BYTES
from protocol.api import ApiKey

NAME = "c" * 30_000
A_PARTITION = 18 + 7  # bytes in a request of v8 and in its reply


@pytest.mark.parametrize("more", [-1000, 1000])
def test_request_is_kept_up_to_a_size_of_it_and_its_reply(more: int) -> None:
    world = World("memory")
    client = Client(world)
    partitions = (MOST_BYTES + more - len(NAME)) // A_PARTITION
    make_topic(client, "t", partitions)
    served = count_repeats(world, ApiKey.OFFSET_COMMIT)
    for offset in range(4):
        client.send(commit_request("g", dict.fromkeys(range(partitions), offset)), 8, client_id=NAME)
        world.run()
        (answer,) = client.replies()
        assert {each.error_code for each in answer.topics[0].partitions} == {0}
    assert any(served) is (more < 0)
