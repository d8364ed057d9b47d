"""Requests that name a topic by an earlier request of their session, or by the id of a topic that was deleted."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, make_topic
from core_requests import produce_request
from unit.coordinator.share.kit import ShareWorld
from unit.journal.test_ring import Bench

from broker.journal.reading import entries, judged, topic_names
from broker.journal.sessions import Sessions
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState

BY_NAME, BY_ID = 12, 13


class Reader:
    """A client with a fetch session over the topics that it names."""

    def __init__(self, bench: Bench, version: int, ids: dict[str, bytes] | None = None) -> None:
        self.bench, self.version = bench, version
        self.ids = ids or {"t": bench.topic_id, "u": make_topic(Client(bench.world), "u", 2)}
        self.session = self.epoch = 0

    def _topic(self, kind: Any, name: str, **fields: Any) -> Any:
        return kind(**({"topic": name} if self.version == BY_NAME else {"topic_id": self.ids[name]}), **fields)

    def fetch(self, *add: str, forget: tuple[str, ...] = (), pad: int = 0) -> None:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            session_id=self.session,
            session_epoch=self.epoch,
            topics=[self._topic(FetchTopic, name, partitions=[partition]) for name in add],
            forgotten_topics_data=[self._topic(ForgottenTopic, name, partitions=[0]) for name in forget],
            rack_id="r" * pad,
        )
        answer = self.bench.client.call(request, self.version)
        assert answer.error_code == 0
        self.session, self.epoch = answer.session_id, self.epoch + 1

    def judged(self, topic: str) -> list[bool | None]:
        return [is_fit for entry, is_fit in self.bench.judged(topic=topic) if entry.api == "Fetch"]


@pytest.fixture(params=[BY_NAME, BY_ID, 15])
def reader(request):
    return Reader(Bench(), request.param)


def test_later_fetches_of_a_session_read_what_it_has_named_and_not_forgotten(reader):
    for name in "tu":  # the first reply is above what is kept of it
        Client(reader.bench.world).call(produce_request(name, 0, b"x" * 6000), 9)
    reader.fetch("t")
    reader.fetch()
    reader.fetch("u")
    reader.fetch(forget=("t",))
    reader.fetch()
    assert reader.judged("t") == [True, True, True, True, False]
    assert reader.judged("u") == [False, False, True, True, True]


def test_fetch_of_a_session_whose_beginning_is_not_there_may_read_anything(reader):
    reader.fetch("t")
    reader.bench.ring.clear()
    reader.fetch()
    reader.fetch("u")
    assert reader.judged("t") == [None, None]
    assert reader.judged("u") == [None, True]


def test_session_is_not_known_any_more_after_a_request_that_was_too_large_to_be_kept(reader):
    other = Reader(reader.bench, reader.version, reader.ids)
    for each in (reader, other):
        each.fetch("t")
    reader.fetch("u", pad=5000)
    for each in (reader, other):
        each.fetch()
    assert reader.judged("u") == [False, False, None, None, False]


def test_topic_that_was_deleted_is_found_by_its_name(reader):
    reader.fetch("t")
    reader.fetch()
    Client(reader.bench.world).call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000), 6)
    make_topic(Client(reader.bench.world), "t")
    assert reader.judged("t") == [True, True]
    assert reader.judged("u") == [False, False]


def test_id_that_nobody_knows_may_be_of_any_topic():
    reader = Reader(Bench(), BY_ID)
    reader.ids["t"] = b"?" * 16
    reader.fetch("t")
    reader.fetch()
    reader.fetch("u")
    assert reader.judged("u") == [None, None, True]


def test_id_of_zeros_is_that_of_no_topic():
    reader = Reader(Bench(), BY_ID)
    reader.ids["t"] = bytes(16)
    reader.fetch("t")
    assert reader.judged("u") == [False]


def judged_share_fetches(world: ShareWorld, topic: str) -> list[bool | None]:
    ring: Any = world.world.broker.clients.journal
    name_of = topic_names(ring, world.world.broker.metadata.topics_by_id)
    sessions, kept = Sessions(name_of), [each for each in entries(ring) if each.api == "ShareFetch"]
    for entry in kept:
        sessions.add(entry)
    return [is_fit for _, is_fit in judged(kept, {"topic": topic}, name_of, session_topics=sessions.topics_of)][::-1]


def test_later_share_fetches_of_a_session_read_what_it_has_named():
    with ShareWorld(None) as world:
        world.world.broker.keep_journal(1 << 20)
        world.produce(2)
        member = world.reader("m")
        member.acquired()
        member.acquired()
        found = judged_share_fetches(world, "t")
        assert len(found) > 1
        assert found == [True] * len(found)
        assert judged_share_fetches(world, "u") == [False] * len(found)


def test_share_sessions_are_not_known_any_more_after_a_request_that_was_too_large_to_be_kept():
    """Its first bytes do not tell whose session it was."""
    with ShareWorld(None) as world:
        world.world.broker.keep_journal(1 << 20)
        member = world.reader("m")
        member.fetch()
        member.fetch(forget=range(1, 2000))
        member.fetch()
        assert judged_share_fetches(world, "u") == [False, None, None]
