"""Scripts of consumer group requests, played to any broker, and the answers in a form that can be compared.

A script is a list of steps: what one member does next. What a request says (epoch, owned partitions) follows from the
answers before it, so the same script can be played to Apache Kafka and to this broker. Everybody wants the range
assignor, whose result is the same everywhere; classic members are static, so that their place in it is, too.

`python tests/conformance/consumer_scripts.py HOST:PORT [COUNT]` plays random scripts to a broker over a socket (a fresh
Apache Kafka with group.consumer.assignment.interval.ms=0 and group.initial.rebalance.delay.ms=0) and writes
consumer_groups.json: see test_consumer_groups_as_kafka.py.
"""

from __future__ import annotations

import json
import random
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker.coordinator.groups.consumer.embedded_protocol import read_assignment
from protocol.api import response_class
from protocol.codegen import codec
from protocol.header import decode_response_header, encode_request_header
from protocol.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from protocol.messages.cluster import FindCoordinatorRequest, MetadataRequest
from protocol.messages.consumer_group import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest

RECORDED = Path(__file__).with_name("consumer_groups.json")
TOPICS = {"ca": 6, "cb": 3, "cc": 2}
WISHES = (["ca"], ["cb"], ["ca", "cb"], ["cb", "cc", "absent"], [])
INSTANCES = (None, None, None, "i3", "i4")  # of the members of the consumer protocol
CLASSICS = ("k0", "k1")  # instance ids of the classic ones
KINDS = (
    *["beat"] * 14,
    *["join"] * 5,
    *("quiet", "full", "old", "ahead", "wish", "wish", "rack", "leave", "away", "away", "commit", "commit", "commit"),
    *("fetch", "describe", "describe", "classic join", "classic join", "classic sync", "classic sync"),
    *("classic beat", "classic beat", "classic leave", "classic commit"),
)

NOT_READY = (14, 15, 16)
Step = list[Any]  # kind, member, number
Call = Callable[[Any, int], Any]


def random_script(seed: int, length: int = 50) -> list[Step]:
    rng = random.Random(seed)
    members = rng.sample(range(len(INSTANCES)), rng.choice((1, 2, 3, 5)))
    kinds = KINDS if seed % 3 else [k for k in KINDS if not k.startswith("classic")]
    return [[rng.choice(kinds), rng.choice(members), rng.randrange(12)] for _ in range(length)]


class Member:
    def __init__(self, number: int) -> None:
        self.number = number
        self.instance = INSTANCES[number]
        self.lives = 0
        self.member_id = f"m{number}"
        self.epoch = 0
        self.owned: dict[bytes, list[int]] = {}
        self.told: dict[bytes, list[int]] = {}


class Classic:
    def __init__(self, number: int) -> None:
        self.instance = CLASSICS[number]
        self.member_id, self.generation = "", -1


class Player:
    """Plays one script; `call` sends a request and answers the response."""

    def __init__(self, call: Call, group_id: str) -> None:
        self.call = call
        self.group_id = group_id
        self.members = [Member(n) for n in range(len(INSTANCES))]
        self.classics = [Classic(n) for n in range(len(CLASSICS))]
        answer = call(MetadataRequest(topics=None), 12)
        self.ids = {t.name: t.topic_id for t in answer.topics if t.name in TOPICS}
        self.names = {id_: name for name, id_ in self.ids.items()}

    def play(self, script: list[Step]) -> list[list[Any]]:
        return [self.step(*step) for step in script]

    def step(self, kind: str, number: int, n: int) -> list[Any]:
        if kind.startswith("classic "):
            method = getattr(self, "_" + kind.replace(" ", "_"))
            return list(method(self.classics[number % len(CLASSICS)], n))
        return list(getattr(self, "_" + kind)(self.members[number], n))

    # -- members of the consumer protocol

    def _heartbeat(self, member: Member, epoch: int, **fields: Any) -> list[Any]:
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": self.group_id,
                "member_id": member.member_id,
                "member_epoch": epoch,
                "instance_id": member.instance,
                **fields,
            }
        )
        answer = self.call(request, 1)
        if answer.error_code:
            if epoch >= 0:
                member.epoch, member.owned = 0, {}
            return [answer.error_code]
        if epoch >= 0:
            member.epoch = answer.member_epoch
            if answer.assignment is not None:
                member.owned = {t.topic_id: sorted(t.partitions) for t in answer.assignment.topic_partitions}
        told = None if answer.assignment is None else self._by_name(answer.assignment.topic_partitions)
        return [0, answer.member_epoch, told]

    def _by_name(self, rows: Any) -> dict[str, list[int]]:
        named = sorted((self.names[t.topic_id], sorted(t.partitions)) for t in rows)
        return dict(named)

    def _rows(self, member: Member) -> list[Any]:
        return [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=t, partitions=p) for t, p in member.owned.items()]

    def _join(self, member: Member, n: int) -> list[Any]:
        if member.instance is not None and n % 3:
            member.lives += 1
            member.member_id = f"m{member.number}-{member.lives}"
        member.owned, member.told = {}, {}
        return self._heartbeat(
            member,
            0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=WISHES[n % len(WISHES)],
            server_assignor="range",
            topic_partitions=[],
        )

    def _beat(self, member: Member, n: int) -> list[Any]:
        fields = {}
        if member.owned != member.told:
            fields["topic_partitions"] = self._rows(member)
            member.told = member.owned
        return self._heartbeat(member, member.epoch or 1, **fields)

    def _quiet(self, member: Member, n: int) -> list[Any]:
        return self._heartbeat(member, member.epoch or 1)

    def _full(self, member: Member, n: int) -> list[Any]:
        fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": WISHES[n % 2]}
        return self._heartbeat(member, member.epoch or 1, topic_partitions=self._rows(member), **fields)

    def _old(self, member: Member, n: int) -> list[Any]:
        rows = self._rows(member) if n % 3 else None
        return self._heartbeat(member, max(member.epoch - 1, 1), topic_partitions=rows)

    def _ahead(self, member: Member, n: int) -> list[Any]:
        return self._heartbeat(member, member.epoch + 1 + n % 2)

    def _wish(self, member: Member, n: int) -> list[Any]:
        return self._heartbeat(member, member.epoch or 1, subscribed_topic_names=WISHES[n % len(WISHES)])

    def _rack(self, member: Member, n: int) -> list[Any]:
        return self._heartbeat(member, member.epoch or 1, rack_id=f"r{n}")

    def _leave(self, member: Member, n: int) -> list[Any]:
        return self._heartbeat(member, -1)

    def _away(self, member: Member, n: int) -> list[Any]:
        return self._heartbeat(member, -2)

    def _commit(self, member: Member, n: int) -> list[Any]:
        return self._commit_as(member.member_id, member.instance, member.epoch - n % 4, n, 9)

    def _commit_as(self, member_id: str, instance: str | None, epoch: int, n: int, version: int) -> list[Any]:
        topic = ("ca", "cb", "ca")[n % 3]
        partitions = [n % TOPICS[topic], (n + 1) % TOPICS[topic]][: 1 + n % 2]
        rows = [
            OffsetCommitRequestPartition(partition_index=p, committed_offset=n, committed_metadata="")
            for p in partitions
        ]
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            group_instance_id=instance,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=rows)],
        )
        return [p.error_code for t in self.call(request, version).topics for p in t.partitions]

    def _fetch(self, member: Member, n: int) -> list[Any]:
        asked = OffsetFetchRequestGroup(
            group_id=self.group_id, member_id=member.member_id, member_epoch=member.epoch - n % 3, topics=None
        )
        group = self.call(OffsetFetchRequest(groups=[asked]), 9).groups[0]
        offsets = {t.name: {p.partition_index: p.committed_offset for p in t.partitions} for t in group.topics}
        return [group.error_code, json.loads(json.dumps(offsets, sort_keys=True))]

    def _describe(self, member: Member, n: int) -> list[Any]:
        group = self.call(ConsumerGroupDescribeRequest(group_ids=[self.group_id]), 1).groups[0]
        listed = self.call(ListGroupsRequest(), 5).groups
        kind = [[g.group_state, g.group_type, g.protocol_type] for g in listed if g.group_id == self.group_id]
        old = self.call(DescribeGroupsRequest(groups=[self.group_id]), 6).groups[0]
        found: list[Any] = [group.error_code, kind, old.error_code, old.group_state]
        if group.error_code == 0:
            found += [group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name]
            for m in sorted(group.members, key=lambda m: (m.instance_id or "", m.member_id)):
                found.append(
                    [
                        m.instance_id or m.member_id,
                        m.rack_id,
                        m.member_epoch,
                        sorted(m.subscribed_topic_names),
                        self._by_name(m.assignment.topic_partitions),
                        self._by_name(m.target_assignment.topic_partitions),
                        m.member_type,
                    ]
                )
        return found

    # -- members of the classic protocol

    def _classic_join(self, client: Classic, n: int) -> list[Any]:
        names = [t.encode() for t in WISHES[n % 3]]
        data = b"\0\0" + len(names).to_bytes(4, "big")
        data += b"".join(len(t).to_bytes(2, "big") + t for t in names) + b"\xff\xff\xff\xff"
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=client.member_id if n % 4 else "",
            group_instance_id=client.instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=data)],
        )
        if not self._is_consumer_group():
            return ["no consumer group"]  # it would have to wait for the others
        answer = self.call(request, 9)
        if answer.error_code == 0:
            client.member_id, client.generation = answer.member_id, answer.generation_id
        return [answer.error_code, answer.generation_id, answer.protocol_name, answer.leader, len(answer.members)]

    def _is_consumer_group(self) -> bool:
        group = self.call(ConsumerGroupDescribeRequest(group_ids=[self.group_id]), 1).groups[0]
        return bool(group.error_code == 0 and group.members)

    def _classic_sync(self, client: Classic, n: int) -> list[Any]:
        if not self._is_consumer_group():
            return ["no consumer group"]
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=client.generation - (n % 7 == 0),
            member_id=client.member_id,
            group_instance_id=client.instance,
            protocol_type="consumer",
            protocol_name="range",
        )
        answer = self.call(request, 5)
        if answer.error_code:
            return [answer.error_code]
        found, data = read_assignment(answer.assignment)
        return [0, {t: sorted(found[t]) for t in sorted(found)}, len(data), answer.protocol_name]

    def _classic_beat(self, client: Classic, n: int) -> list[Any]:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=client.generation - (n % 7 == 0),
            member_id=client.member_id,
            group_instance_id=client.instance,
        )
        return [self.call(request, 4).error_code]

    def _classic_leave(self, client: Classic, n: int) -> list[Any]:
        row = MemberIdentity(member_id=client.member_id if n % 2 else "", group_instance_id=client.instance)
        answer = self.call(LeaveGroupRequest(group_id=self.group_id, members=[row]), 5)
        return [answer.error_code, *(m.error_code for m in answer.members)]

    def _classic_commit(self, client: Classic, n: int) -> list[Any]:
        return self._commit_as(client.member_id, client.instance, client.generation - n % 3, n, 8 + n % 2)


def make_topics(call: Call) -> None:
    """The topics that the scripts are about, once a broker."""
    wanted = [CreatableTopic(name=name, num_partitions=n, replication_factor=1) for name, n in TOPICS.items()]
    call(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), 7)


class Socket:
    """A connection to a broker: one request, one response."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.connection = socket.create_connection((host, int(port)))

    def __call__(self, request: Any, version: int) -> Any:
        data = encode_request_header(request.API_KEY, version, 1, "client")
        data += codec(type(request), version).encode(request)
        self.connection.sendall(len(data).to_bytes(4, "big") + data)
        received = b""
        while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
            more = self.connection.recv(1 << 16)
            if not more:
                raise ConnectionError(f"closed by {type(request).__name__} v{version}")
            received += more
        _, position = decode_response_header(received, request.API_KEY, version, 4)
        return codec(response_class(request.API_KEY), version).decode(received, position)[0]


def record(address: str, count: int) -> None:
    call = Socket(address)
    make_topics(call)
    for n in range(200):  # makes the offsets topic, and waits until all of its partitions are there
        group_id = f"ready-{n}"
        call(FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id]), 4)
        while call(ConsumerGroupDescribeRequest(group_ids=[group_id]), 1).groups[0].error_code in NOT_READY:
            pass
    recorded = []
    for seed in range(count):
        script = random_script(seed)
        answers = Player(call, f"script-{seed}-{time.time_ns()}").play(script)
        recorded.append({"script": script, "answers": answers})
    lines = ",\n".join(json.dumps(r, separators=(",", ":")) for r in recorded)
    RECORDED.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    record(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40)
