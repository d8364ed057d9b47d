"""Two brokers that see the same bytes, one with the shortcuts of offset requests and one without."""

from __future__ import annotations

from typing import Any

from core_broker import Client, World, make_topic

from protocol.codegen import codec
from protocol.header import encode_request_header
from protocol.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from protocol.messages.offsets import OffsetCommitRequest
from storage.files.env import Rng

TOPICS = {"one": 1, "five": 5, "many": 25, "a.b": 3}
GROUPS = ["g", "h", "dynamic", "static", "ünï-😀", ""]


class Pair:
    """Two brokers that see the same bytes."""

    def __init__(self, flush: str) -> None:
        self.worlds = [World(flush, shortcuts=True), World(flush, shortcuts=False)]
        self.clients = [[Client(world), Client(world)] for world in self.worlds]
        self.ids: dict[str, bytes] = {}
        for clients in self.clients:
            for name, partitions in TOPICS.items():
                self.ids[name] = make_topic(clients[0], name, partitions)
            self.members = [join(clients[0], "dynamic", None), join(clients[0], "static", "instance")]
            for client in clients:
                client.replies()
        self.seen = [[len(c.transport.received) for c in clients] for clients in self.clients]
        for world in self.worlds:
            world.env.rng = Rng(7)

    def send(self, which: int, data: bytes) -> None:
        for clients in self.clients:
            clients[which].send_bytes(data)

    def each(self, do: Any) -> None:
        for world in self.worlds:
            do(world)

    def check_replies(self) -> None:
        self.each(World.run)
        fast, general = self.clients
        for n, (ours, theirs) in enumerate(zip(fast, general, strict=True)):
            assert ours.closed == theirs.closed
            seen = self.seen[0][n]
            assert ours.transport.received[seen:] == theirs.transport.received[self.seen[1][n] :]
            self.seen[0][n], self.seen[1][n] = len(ours.transport.received), len(theirs.transport.received)
            if ours.closed:
                for side, world in enumerate(self.worlds):
                    self.clients[side][n] = Client(world)
                    self.seen[side][n] = 0

    def check_state(self) -> None:
        fast, general = self.worlds
        assert fast.fingerprints() == general.fingerprints()
        for ours, theirs in zip(fast.broker.groups.shards, general.broker.groups.shards, strict=True):
            assert (ours.log is None) == (theirs.log is None)
            if ours.log is not None:
                assert log_bytes(ours.log) == log_bytes(theirs.log)
            assert ours.deadlines.by_name == theirs.deadlines.by_name
        live, replayed = fast.fingerprints(), fast.crash().fingerprints()
        for name, facts in live.items():
            if "offsets" in facts:
                again = replayed[name]["offsets"] if name in replayed else {}
                assert again == facts["offsets"], "the log says something else than the table"


def log_bytes(log: Any) -> bytes:
    return b"".join(bytes(batch) for _, batch in log.batches(log.log_start_offset))


def join(client: Client, group_id: str, instance: str | None) -> str:
    """The only member of a group that is stable; its id."""
    ask = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
    )
    if instance is None:
        ask.member_id = client.call(ask, 5).member_id
    answer = client.call(ask, 5)
    assert (answer.error_code, answer.generation_id) == (0, 1)
    sync = SyncGroupRequest(
        group_id=group_id,
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        group_instance_id=instance,
        assignments=[SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"a")],
    )
    assert client.call(sync, 3).error_code == 0
    member_id: str = answer.member_id
    return member_id


def spell(pair: Pair, request: Any, version: int, client_id: str | None, header_tags: Any) -> bytes:
    """The bytes of a request, with ids where the version wants them and members by their real names."""
    rows = (
        request.topics
        if isinstance(request, OffsetCommitRequest)
        else [row for group in request.groups for row in group.topics or ()]
    )
    for row in rows:
        row.topic_id = pair.ids.get(row.name, b"n" * 16)
    for holder in [request] if isinstance(request, OffsetCommitRequest) else request.groups:
        if holder.member_id and holder.member_id[0] == "$":
            holder.member_id = pair.members[int(holder.member_id[1])]
    data = encode_request_header(request.API_KEY, version, 77, client_id, header_tags)
    data += codec(type(request), version).encode(request)
    return len(data).to_bytes(4, "big") + data
