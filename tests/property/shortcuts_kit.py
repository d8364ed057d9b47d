"""Requests that shortcuts serve, spoilt ones as well, and the events that interfere with them."""

from __future__ import annotations

from typing import Any

from core_requests import commit_request, fetch_request, produce_request
from history_kit import GROUPS, NAMES, TOPICS, History, heartbeat
from hypothesis import note
from hypothesis import strategies as st
from txn_kit import Producer

from broker.cluster.virtual_nodes import VirtualNodes
from broker.handlers import make_routes
from protocol.api import ApiKey
from protocol.declare import Message
from protocol.messages.fetch import FetchRequest
from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.produce import ProduceRequest
from protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)

SERVED = {route.api_key: range(route.min_version, route.max_version + 1) for route in make_routes()}


def versions(request: type[Message], *usual: int) -> list[int]:
    """All served versions of an API; those that clients use, and the newest, come more often."""
    return [*SERVED[request.API_KEY], *[*usual, request.MAX_VERSION] * 4]


KINDS = {
    "commit": [8, 8, 10],
    "offsets": [8, 9, *[OffsetFetchRequest.MAX_VERSION] * 2],
    "produce": versions(ProduceRequest, 9),
    "fetch": versions(FetchRequest, 11),
    "add": list(range(AddPartitionsToTxnRequest.MAX_VERSION + 1)),
    "add offsets": list(range(AddOffsetsToTxnRequest.MAX_VERSION + 1)),
    "txn produce": versions(ProduceRequest, 11, 12),
    "txn offsets": list(range(TxnOffsetCommitRequest.MAX_VERSION + 1)),
}
# These versions are served from their bytes, from the second request on; of each API of broker/requests the newest is.
# Message sets, declared as older versions and served where an older release is imitated, never are.
REPEATED = {
    "commit": (OffsetCommitRequest, range(OffsetCommitRequest.MAX_VERSION, OffsetCommitRequest.MAX_VERSION + 1)),
    "offsets": (OffsetFetchRequest, range(8, OffsetFetchRequest.MAX_VERSION + 1)),
    "fetch": (FetchRequest, SERVED[ApiKey.FETCH]),
    "add": (AddPartitionsToTxnRequest, [AddPartitionsToTxnRequest.MAX_VERSION]),
    "add offsets": (AddOffsetsToTxnRequest, [AddOffsetsToTxnRequest.MAX_VERSION]),
    "txn offsets": (TxnOffsetCommitRequest, [TxnOffsetCommitRequest.MAX_VERSION]),
    "produce": (ProduceRequest, SERVED[ApiKey.PRODUCE]),
    "txn produce": (ProduceRequest, SERVED[ApiKey.PRODUCE]),
}


END_VERSIONS = range(EndTxnRequest.MAX_VERSION + 1)


SPOILT = {
    "two batches": lambda data: data * 2,
    "tail": lambda data: data + data[:30],
    "cut": lambda data: data[:-1],
    "crc": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "magic": lambda data: data[:16] + b"\3" + data[17:],
    "short": lambda data: data[:8] + (30).to_bytes(4, "big") + data[12:42],
    "nothing": lambda data: b"",
}


def spoil(request: Any, how: str) -> Any:
    """The request with something wrong in its batch; half of the requests of a habit are."""
    part = request.topic_data[0].partition_data[0]
    part.records = SPOILT[how](bytes(part.records))
    return request


class Habit:
    """What a client asks again and again: the same request, but for offsets, sequences and epochs."""

    def __init__(self, data: Any) -> None:
        self.kind = data.draw(st.sampled_from(list(KINDS)))
        self.topic = data.draw(st.sampled_from(["a", "a", "b"]))
        self.index = data.draw(st.integers(0, TOPICS[self.topic] - 1))
        self.group = data.draw(st.sampled_from(GROUPS))
        self.name = data.draw(st.sampled_from(NAMES))
        self.version = data.draw(st.sampled_from(KINDS[self.kind]))
        self.generation = data.draw(st.sampled_from([-1, -1, -1, 1]))
        self.flag = data.draw(st.booleans())
        self.spoilt = data.draw(st.sampled_from([*[""] * 6, *SPOILT]))
        self.asked = 0

    @classmethod
    def of(cls, kind: str, version: int) -> Habit:
        """A usual one."""
        usual: dict[str, Any] = {"topic": "a", "index": 0, "group": "g", "name": "tx", "generation": -1, "flag": False}
        habit = cls.__new__(cls)
        habit.__dict__.update(usual, kind=kind, version=version, spoilt="", asked=0)
        return habit

    def __repr__(self) -> str:
        place = f"{self.topic}-{self.index} {self.group} {self.name} {self.spoilt}"
        return f"({self.kind} v{self.version} {place} {self.generation} {self.flag})"

    def request(self, history: History) -> Any:
        """The next one."""
        self.asked += 1
        topic, index, group, flag = self.topic, self.index, self.group, self.flag
        if self.kind == "commit":
            partitions = [0, 1] if flag and topic == "a" else [index]
            request: Any = commit_request(group, dict.fromkeys(partitions, self.asked), topic)
            request.generation_id_or_member_epoch = self.generation
            if self.version >= 10:
                request.topics[0].topic_id = history.ids[topic]
            return request
        if self.kind == "offsets":
            named = OffsetFetchRequestTopics(name=topic, topic_id=history.ids[topic], partition_indexes=[0, index])
            topics = [named] if flag else None
            groups = [OffsetFetchRequestGroup(group_id=group, topics=topics, member_epoch=self.generation)]
            return OffsetFetchRequest(groups=groups, require_stable=self.generation > 0)
        if self.kind == "produce":
            return self.spoilt_or_not(produce_request(topic, index, b"value" * self.asked**2), history)
        if self.kind == "fetch":
            request = fetch_request(topic, index, 0, isolation_level=int(flag))
            request.topics[0].topic_id = history.ids[topic]
            return request
        producer = history.producers[self.name]
        if self.kind == "add":
            return adding(producer, [topic, "a"] if flag else [topic], index)
        if self.kind == "add offsets":
            return adding_offsets(producer, group)
        if self.kind == "txn produce":
            request = producer.produce_request(b"in a transaction", topic=topic, index=index)
            return self.spoilt_or_not(request, history)
        member = {
            "generation_id_or_member_epoch": self.generation,
            "member_id": "" if self.generation < 0 else "nobody",
        }
        request = producer.offsets_request(
            {0: self.asked} if flag else {index: self.asked, 0: 5}, group, topic, **member
        )
        if self.spoilt and self.asked % 2:  # then it is no plain commit, and the next one is
            request.topics[0].partitions[0].committed_metadata = self.spoilt
        return request

    def spoilt_or_not(self, request: Any, history: History) -> Any:
        """A Produce in this version."""
        if self.version >= 13:
            request.topic_data[0].name, request.topic_data[0].topic_id = "", history.ids[self.topic]
        return spoil(request, self.spoilt) if self.spoilt and self.asked % 2 else request


def adding(producer: Producer, names: list[str], index: int) -> AddPartitionsToTxnRequest:
    """AddPartitionsToTxn, of each version; the newer ones name the transaction once for each topic."""
    who = {"producer_id": producer.id, "producer_epoch": producer.epoch}
    topics = [AddPartitionsToTxnTopic(name=name, partitions=[index]) for name in names]
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.name,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=topics,
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=producer.name, **who, verify_only=topic is not topics[0], topics=[topic]
            )
            for topic in topics
        ],
    )


def adding_offsets(producer: Producer, group: str) -> AddOffsetsToTxnRequest:
    """AddOffsetsToTxn."""
    return AddOffsetsToTxnRequest(
        transactional_id=producer.name, producer_id=producer.id, producer_epoch=producer.epoch, group_id=group
    )


EVENTS = (
    ["end"] * 4
    + ["init", "delete topic", "make topic", "grow", "delete group", "delete offsets", "advance", "fail", "restart"]
    + ["move", "hold syncs", "share", "consumer"] * 2
)


def event(history: History, data: Any, habits: list[Habit]) -> None:
    """Something that a shortcut may rely on changes."""
    what = data.draw(st.sampled_from(EVENTS))
    note(what)
    if what == "end":
        history.end(
            data.draw(st.sampled_from(NAMES)), data.draw(st.sampled_from(END_VERSIONS)), data.draw(st.booleans())
        )
    elif what == "init":
        history.init(data.draw(st.sampled_from(NAMES)))
    elif what == "delete topic":
        topic = DeleteTopicState(name=data.draw(st.sampled_from(list(TOPICS))), topic_id=bytes(16))
        history.send(DeleteTopicsRequest(topics=[topic], timeout_ms=1), 6)
    elif what == "make topic":
        history.make_topic(data.draw(st.sampled_from(list(TOPICS))))
    elif what == "grow":
        history.send(CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="b", count=3)], timeout_ms=1), 3)
    elif what == "delete group":
        history.send(DeleteGroupsRequest(groups_names=[data.draw(st.sampled_from(GROUPS))]), 2)
    elif what == "delete offsets":
        topics = [OffsetDeleteRequestTopic(name="a", partitions=[OffsetDeleteRequestPartition(partition_index=0)])]
        history.send(OffsetDeleteRequest(group_id=data.draw(st.sampled_from(GROUPS)), topics=topics), 0)
    elif what in ("share", "consumer"):
        epoch = data.draw(st.sampled_from([0, 0, -1]))
        history.send(heartbeat(what, data.draw(st.sampled_from(GROUPS)), epoch), 1)
    elif what == "advance":
        ms = data.draw(st.sampled_from([1, 1_000, 70_000]))
        history.each(lambda side: side.world.advance(ms))
    elif what == "fail":
        history.each(lambda side: side.world.files.inject(1, forever=True))
        ask(history, habits)
        history.each(lambda side: side.world.files.heal())
    elif what == "restart":
        history.restart()
    elif what == "hold syncs":
        history.each(lambda side: setattr(side.world, "auto_sync", False))
        ask(history, habits)
        history.each(lambda side: setattr(side.world, "auto_sync", True))
    elif len(history.sides[0].nodes.all) > 1:
        is_up = len(history.sides[0].world.broker.nodes) > 1
        history.each(lambda side: _change(side.nodes, is_up))
    history.check()


def _change(nodes: VirtualNodes, is_up: bool) -> None:
    """Stop the second broker, or start it again."""
    (nodes.stop if is_up else nodes.start)(nodes.all[1], lambda done: None)


def ask(history: History, habits: list[Habit]) -> None:
    """Each habit twice: what the first request teaches the second one uses."""
    for habit in habits:
        for _ in range(2):
            history.send(habit.request(history), habit.version)
    history.check()
