"""Repeats of one OffsetFetch: the reply follows the offsets, and is made again only when they have moved."""

from __future__ import annotations

import pytest
from core_broker import Client, World, count_repeats, make_topic
from core_requests import commit_request

from broker.coordinator.offsets.columns import TopicOffsets
from protocol.api import ApiKey
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

VERSION = 8


def fetched(client: Client, count: int) -> list[int]:
    """The offsets of the first partitions."""
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=list(range(count)))]
    answer = client.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)]), VERSION)
    return [each.committed_offset for each in answer.groups[0].topics[0].partitions]


@pytest.mark.parametrize("count", [1, 3])
def test_reply_is_made_again_when_offsets_have_moved_and_not_when_they_rest(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World("memory")
    client = Client(world)
    make_topic(client, "t", count)
    looked: list[int] = []
    plain = TopicOffsets.plain
    monkeypatch.setattr(TopicOffsets, "plain", lambda *given: looked.append(1) or plain(*given))
    served = count_repeats(world, ApiKey.OFFSET_FETCH)
    for offset in (5, 6, 7, 7, 8):
        client.call(commit_request("g", dict.fromkeys(range(count), offset), "t"), VERSION)
        assert fetched(client, count) == [offset] * count
    assert fetched(client, count) == [8] * count  # this one finds that they rest
    assert served == [False, True, True, True, True, True]
    served.clear()
    looked.clear()
    for _ in range(3):
        assert fetched(client, count) == [8] * count
    assert served == [True] * 3
    assert looked == []
