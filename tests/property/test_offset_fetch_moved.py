"""OffsetFetch between commits: replies that are packed anew are those of the general handler, over any history.

The same questions are asked again and again on one connection while offsets move, get metadata and epochs of their own,
wait for transactions, and are deleted with their group or topic; consumer and share groups take the id; the broker
restarts in between.
"""

from __future__ import annotations

from typing import Any

import pytest
from core_requests import commit_request
from history_kit import History, heartbeat
from hypothesis import given, note
from hypothesis import strategies as st

from broker.coordinator.offsets.table import Committed
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState

COUNT = 4
TOPICS = {"a": COUNT, "b": 1}
PARTITIONS = st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=COUNT, unique=True)
QUESTIONS: list[list[tuple[str, list[int]]] | None] = [
    [("a", [0])],
    [("a", [0, 1])],
    [("a", [2, 0, 0])],
    [("a", [3, 1, 0, 2])],
    [("a", list(range(COUNT)))],
    [("a", [1, 7])],
    [("a", [0]), ("b", [0])],
    None,
]
VERSIONS = [(8, False, -1), (8, True, -1), (9, False, -1), (9, False, 0)]  # version, stable, epoch of no member
ASKED = st.lists(st.tuples(st.sampled_from(QUESTIONS), st.sampled_from(VERSIONS)), min_size=4, max_size=12)


def question(asked: list[tuple[str, list[int]]] | None, *, stable: bool, epoch: int = -1) -> OffsetFetchRequest:
    """OffsetFetch of partitions by topic, or of everything; perhaps with an epoch, but never with a member."""
    topics = None
    if asked is not None:
        topics = [OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in asked]
    group = OffsetFetchRequestGroup(group_id="g", topics=topics, member_epoch=epoch)
    return OffsetFetchRequest(groups=[group], require_stable=stable)


def ask_all(history: History, questions: list[Any]) -> None:
    """Every question. A connection keeps the replies to 16."""
    for asked, (version, stable, epoch) in questions:
        history.send(question(asked, stable=stable, epoch=epoch), version)
    history.check()


def commit(history: History, data: Any) -> None:
    """Some partitions, perhaps with metadata and epochs."""
    indexes = data.draw(PARTITIONS)
    request = commit_request("g", {index: data.draw(st.integers(0, 3)) for index in indexes}, "a")
    for each in request.topics[0].partitions:
        each.committed_leader_epoch = data.draw(st.sampled_from([-1, -1, 0, 5]))
        each.committed_metadata = data.draw(st.sampled_from(["", "", "", None, "m"]))
    history.send(request, 8)


def change(history: History, data: Any, questions: list[Any]) -> None:
    """What else may happen to the offsets of the group."""
    what = data.draw(
        st.sampled_from(["commit"] * 8 + ["pending", "end", "member"] * 2 + ["offsets", "group", "topic", "restart"])
    )
    note(what)
    producer = history.producers["tx"]
    if what == "commit":
        commit(history, data)
    elif what == "pending":
        offsets = {index: data.draw(st.integers(0, 9)) for index in data.draw(PARTITIONS)}
        history.call(producer.offsets_request(offsets, "g", "a"), 5)
    elif what == "member":
        kind, epoch = data.draw(st.sampled_from(["share", "consumer"])), data.draw(st.sampled_from([0, -1]))
        history.call(heartbeat(kind, "g", epoch), 1)
    elif what == "end":
        history.end("tx", 5, data.draw(st.booleans()))
    elif what == "offsets":
        gone = [OffsetDeleteRequestPartition(partition_index=index) for index in data.draw(PARTITIONS)]
        topics = [OffsetDeleteRequestTopic(name="a", partitions=gone)]
        history.send(OffsetDeleteRequest(group_id="g", topics=topics), 0)
    elif what == "group":
        history.send(DeleteGroupsRequest(groups_names=["g"]), 2)
    elif what == "topic":
        gone_topic = DeleteTopicState(name="a", topic_id=bytes(16))
        history.call(DeleteTopicsRequest(topics=[gone_topic], timeout_ms=1), 6)
        ask_all(history, questions)
        history.make_topic("a")
    else:
        history.restart()


@pytest.mark.heavy
@given(st.data())
def test_replies_with_offsets_that_move_are_those_of_the_general_handler(data: Any) -> None:
    history = History("os", 1, TOPICS, share_coordinator_state_topic_num_partitions="1")
    if data.draw(st.booleans()):
        history.call(commit_request("g", dict.fromkeys(range(COUNT), 0), "a"), 8)
    history.call(heartbeat("share", "another"), 1)
    questions = data.draw(ASKED)
    ask_all(history, questions)
    for _ in range(data.draw(st.integers(1, 25))):
        change(history, data, questions)
        ask_all(history, questions)
    history.check_logs()


def test_reply_is_packed_anew_for_an_offset_that_moved() -> None:
    """The general handler is asked once, and again when the reply has another form."""
    history = History("os", 1, TOPICS)
    for moved in range(5):
        for indexes in ([2], [3, 1], list(range(COUNT)), [3, 1, 0, 2]):
            history.call(commit_request("g", {index: 10 * index + moved for index in range(COUNT)}, "a"), 8)
            answer = history.call(question([("a", indexes)], stable=False), 8).groups[0].topics[0]
            assert [(each.partition_index, each.committed_offset) for each in answer.partitions] == [
                (index, 10 * index + moved) for index in indexes
            ]
    assert history.taken[ApiKey.OFFSET_FETCH] == 4 * 4
    history.call(commit_request("g", {2: 9}, "a", metadata="m"), 8)
    answer = history.call(question([("a", [2])], stable=False), 8).groups[0].topics[0]
    assert answer.partitions[0].metadata == "m"
    assert history.taken[ApiKey.OFFSET_FETCH] == 4 * 4


@pytest.mark.parametrize("asked_before", [0, 2])
def test_offset_of_an_earlier_topic_of_the_name_is_not_packed(asked_before: int) -> None:
    """A record of the earlier topic may come last: its transaction ended after the topic was made again."""
    history = History("os", 1, TOPICS)
    history.call(commit_request("g", {0: 1}, "a"), 8)
    for _ in range(asked_before):
        history.call(question([("a", [0])], stable=False), 8)
    for side in history.sides:
        columns = side.world.broker.groups.of("g").machine.offsets.topic("g", "a")
        columns.replay(0, Committed(5, topic_id=b"e" * 16))
    for _ in range(3):
        answer = history.call(question([("a", [0])], stable=False), 8).groups[0].topics[0]
        assert answer.partitions[0].committed_offset == -1
        for side in history.sides:
            side.world.broker.groups.of("g").machine.offsets.topic("g", "a").replay(0, Committed(6, topic_id=b"e" * 16))


@pytest.mark.parametrize(
    ("kind", "epoch", "code"),
    [("share", -1, ErrorCode.GROUP_ID_NOT_FOUND), ("consumer", 0, ErrorCode.UNKNOWN_MEMBER_ID)],
)
def test_reply_is_not_repeated_when_a_group_that_refuses_the_question_takes_the_id(
    kind: str, epoch: int, code: ErrorCode
) -> None:
    history = History("os", 1, TOPICS, share_coordinator_state_topic_num_partitions="1")
    history.call(heartbeat(kind, "another"), 1)
    history.each(lambda side: side.world.advance(5000))  # what the first group of the kind makes is there
    request = question([("a", [0])], stable=False, epoch=epoch)
    for _ in range(3):
        assert history.call(request, 9).groups[0].error_code == 0
    assert history.taken[ApiKey.OFFSET_FETCH] == 2
    assert history.call(heartbeat(kind, "g"), 1).error_code == 0
    for _ in range(2):
        assert history.call(request, 9).groups[0].error_code == code
