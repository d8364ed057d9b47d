"""Replies that clients share, held against replies made for each, over histories in which what they show changes.

Two brokers see the same bytes; one shares, the other does not. Every reply must be the same, whatever happens between
two requests: topics made, grown, deleted, configured, leaders that move, brokers that stop, writes that fail or wait
for a sync, quotas that begin and end, restarts.
"""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, frame
from history_kit import History
from hypothesis import given, note, settings
from hypothesis import strategies as st
from shortcuts_kit import event

from broker.wire.shared_replies import FIRST_BYTES, IDLE_MS, SHARED
from protocol.messages.cluster import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopicRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest

TOPIC, BROKER, LOGGER = 2, 4, 8


class Question:
    """One request, asked again and again in one version."""

    def __init__(self, request: Any, version: int) -> None:
        self._request = request
        self.version = version

    def __repr__(self) -> str:
        return f"{type(self._request).__name__} v{self.version}"

    def request(self, history: History) -> Any:
        return self._request


def configs(kind: int, *names: str) -> DescribeConfigsRequest:
    resources = [DescribeConfigsResource(resource_type=kind, resource_name=name) for name in names]
    return DescribeConfigsRequest(resources=resources)


def metadata(*names: str, create: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


QUESTIONS = [
    *(Question(MetadataRequest(topics=None), version) for version in (1, 5, 9, 12, 13)),
    *(Question(metadata("a", "b"), version) for version in (4, 9)),
    Question(metadata("b", create=True), 12),
    *(Question(configs(TOPIC, "a", "b"), version) for version in (1, 4)),
    Question(configs(BROKER, "1"), 4),
    Question(configs(LOGGER, "1"), 4),
    Question(DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2), 0),
    Question(DescribeTopicPartitionsRequest(topics=[DescribeTopicPartitionsRequestTopicRequest(name="a")]), 0),
]


def alter(kind: int, name: str, key: str, value: str | None) -> IncrementalAlterConfigsRequest:
    change = IncrementalAlterConfigsRequestAlterableConfig(
        name=key, config_operation=1 if value is None else 0, value=value
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[change]
    )
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)


def quota(value: float | None) -> AlterClientQuotasRequest:
    op = OpData(key="request_percentage", value=value or 0.0, remove=value is None)
    entity = EntityData(entity_type="client-id", entity_name="client")
    return AlterClientQuotasRequest(entries=[AlterClientQuotasRequestEntryData(entity=[entity], ops=[op])])


def changes(data: Any) -> tuple[Any, int]:
    """A request that changes what the questions show, and its version."""
    number = data.draw(st.sampled_from([None, "1000", "2000"]))
    return data.draw(
        st.sampled_from(
            [
                (alter(TOPIC, "a", "retention.ms", number), 1),
                (alter(BROKER, "", "log.retention.ms", number), 1),
                (alter(BROKER, "1", "log.cleaner.threads", number and number[0]), 1),
                (alter(LOGGER, "1", "momus", number and "DEBUG"), 1),
                (quota(number and 1000.0), 1),
            ]
        )
    )


def share_small(history: History) -> None:
    """Share replies of any size on one side, and none on the other."""
    sharing, plain = (side.world.broker.router for side in history.sides)
    if sharing.shared.least_bytes:
        sharing.shared.least_bytes = 0
        sharing.shared.wanted = set(SHARED)
    plain.shared = None


@pytest.mark.heavy
@pytest.mark.parametrize(("flush", "brokers"), [("os", 1), ("fsync", 2)])
def test_shared_replies_are_those_that_would_be_made(flush, brokers):
    sent = 0

    @settings(max_examples=20)
    @given(st.data())
    def check(data: Any) -> None:
        nonlocal sent
        asked = data.draw(st.lists(st.sampled_from(QUESTIONS), min_size=2, max_size=5))
        note(repr(asked))
        history = History(flush, brokers)
        for _ in range(data.draw(st.integers(1, 8))):
            share_small(history)
            for question in asked * 2:
                history.send(question.request(history), question.version)
            history.check()
            sent += history.sides[0].world.broker.router.shared.sent
            if data.draw(st.booleans()):
                request, version = changes(data)
                note(repr(request))
                history.send(request, version)
                history.check()
            else:
                event(history, data, asked)
        history.check_logs()

    check()
    assert sent > 50  # or nothing was compared


# -- what the histories do not show


def small(world: World) -> Any:
    """Shares replies of any size."""
    world.broker.router.shared.least_bytes = 0
    world.broker.router.shared.wanted = set(SHARED)
    return world.broker.router.shared


def test_topic_that_is_not_synced_is_shown_to_none():
    world = World("fsync")
    maker, client, shared = Client(world), Client(world), small(world)
    client.call(MetadataRequest(topics=None), 12)
    world.auto_sync = False
    maker.send(CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]), 7)
    for _ in range(3):
        client.send(MetadataRequest(topics=None), 12)
    world.run()
    assert not client.replies()
    world.auto_sync = True
    world.run()
    assert [[topic.name for topic in reply.topics][-1:] for reply in client.replies()] == [["t"]] * 3
    assert not shared.sent


def test_level_of_a_logger_is_that_of_now():
    world = World("os")
    client, shared = Client(world), small(world)
    question = DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=LOGGER, resource_name="1")])
    node = world.broker.nodes.up[0].node_id
    question.resources[0].resource_name = str(node)
    levels = []
    for level in ("DEBUG", "ERROR"):
        answer = client.call(alter(LOGGER, str(node), "momus.router", level), 1)
        assert answer.responses[0].error_code == 0, answer
        configs_of = client.call(question, 4).results[0].configs
        levels += [each.value for each in configs_of if each.name == "momus.router"]
    assert levels == ["DEBUG", "ERROR"]
    assert not shared.sent


def test_client_with_a_quota_has_each_request_measured():
    world = World("os")
    client, shared = Client(world), small(world)
    for _ in range(2):
        client.call(MetadataRequest(topics=None), 12)
    assert shared.sent == 1
    client.call(quota(1000.0), 1)
    for _ in range(3):
        client.call(MetadataRequest(topics=None), 12)
    assert shared.sent == 1


# -- one broker


def filled(partitions: int = 600) -> World:
    world = World("os")
    topic = CreatableTopic(name="t", num_partitions=partitions, replication_factor=1)
    client = Client(world)
    client.call(CreateTopicsRequest(topics=[topic], timeout_ms=1), 7)
    client.call(MetadataRequest(topics=None), 11)  # the first large reply says that keeping is worth it
    assert not world.broker.router.shared.kept_bytes
    return world


def test_second_client_gets_the_bytes_of_the_first_under_its_own_correlation_id():
    world = filled()
    first, second = Client(world), Client(world)
    for client, correlation_id in ((first, 5), (second, 6)):
        client.send_bytes(frame(MetadataRequest(topics=None), 12, correlation_id, client_id=f"c{correlation_id}"))
        world.run()
    ours, theirs = bytes(first.transport.received), bytes(second.transport.received)
    assert world.broker.router.shared.sent == 1
    assert len(ours) > FIRST_BYTES
    assert ours[:4] == theirs[:4]
    assert (ours[4:8], theirs[4:8]) == (b"\0\0\0\5", b"\0\0\0\6")
    assert ours[8:] == theirs[8:]
    assert second.connection.client == "c6"


def test_bytes_of_shared_replies_count_for_the_turn_that_sends_them():
    world = filled()
    client = Client(world)
    client.call(MetadataRequest(topics=None), 12)
    client.send(MetadataRequest(topics=None), 12)
    assert world.broker.router.shared.sent == 1
    assert world.broker.turn.answered_bytes > 10_000 > client.connection.unsent
    world.run()
    assert client.replies()


def test_reply_that_waits_for_a_slow_client_counts_only_for_its_place():
    world = filled()
    clients = [Client(world) for _ in range(40)]
    for client in clients:
        client.transport.stalled = True
        for correlation_id in range(3):
            client.send_bytes(frame(MetadataRequest(topics=None), 12, correlation_id))
        world.run()
    assert world.broker.router.shared.sent >= len(clients) - 1
    held = sum(client.connection.stream.held_bytes for client in clients)
    assert held < len(clients) * 3 * (FIRST_BYTES + 1000)
    for client in clients:
        client.transport.stalled = False
        client.transport.read()
        world.run()
        client.transport.read()
    world.run()
    assert len({bytes(client.transport.received) for client in clients}) == 1


def test_replies_are_dropped_after_a_while_without_use():
    world = filled()
    client, shared = Client(world), world.broker.router.shared
    client.call(MetadataRequest(topics=None), 12)
    assert shared.kept_bytes > FIRST_BYTES
    world.advance(IDLE_MS - 1)
    client.call(MetadataRequest(topics=None), 12)  # used: it stays for another while
    world.advance(IDLE_MS)
    assert shared.kept_bytes
    world.advance(IDLE_MS + 1)
    assert not shared.kept_bytes


def test_what_is_kept_is_bounded():
    world = filled()
    client, shared = Client(world), world.broker.router.shared
    shared.most_bytes = 100_000
    most = 0
    for repeats in range(1, 20):  # the same reply to requests that differ
        client.call(metadata(*["t"] * repeats), 12)
        most = max(most, shared.kept_bytes)
    assert 50_000 < most <= shared.most_bytes
    shared.clear()
    shared.most_bytes = FIRST_BYTES
    client.call(MetadataRequest(topics=None), 12)
    assert not shared.kept_bytes
