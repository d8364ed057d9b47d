"""Scripts of classic group requests, played to any broker, and the answers in a form that can be compared.

A script is a list of steps: what one client sends next. What a request says (member id, generation, assignment) follows
from the answers before it, so the same script can be played to Apache Kafka and to this broker. Member ids become
names: "c.k" is the k-th id that client c was given.

`python tests/conformance/group_scripts.py HOST:PORT [COUNT]` plays random scripts to a broker over sockets (a fresh
Apache Kafka with group.initial.rebalance.delay.ms=0 and a topic "scripted") and writes classic_groups.json: see
test_classic_groups_as_kafka.py.
"""

from __future__ import annotations

import json
import random
import select
import socket
import sys
import time
from pathlib import Path
from typing import Any

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
    SyncGroupRequestAssignment,
)
from protocol.messages.group_admin import DescribeGroupsRequest
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

RECORDED = Path(__file__).with_name("classic_groups.json")
TOPIC = "scripted"
# instance id, JoinGroup version; the third is a second process with the instance of the second
CLIENTS = ((None, 9), ("i", 9), ("i", 5), (None, 3), ("j", 8))
PROTOCOLS = ((("a", b"1"),), (("a", b"2"), ("b", b"2")), (("b", b"3"), ("a", b"3")))
KINDS = (*["go"] * 12, "join", "forget", "sync", "heartbeat", "commit", "commit", "leave", "remove")

Step = list[Any]  # kind, client, number of a protocol list
Answer = list[Any]  # client, api, then what the answer says


def random_script(seed: int, length: int = 40) -> list[Step]:
    rng = random.Random(seed)
    clients = rng.sample(range(len(CLIENTS)), rng.choice((2, 3, 3, 5)))
    protocols = [0, 0, 0, 1, 2] if rng.random() < 0.5 else [1, 1, 1, 2]
    return [[rng.choice(KINDS), rng.choice(clients), rng.choice(protocols)] for _ in range(length)]


class Client:
    def __init__(self, number: int) -> None:
        self.number = number
        self.instance, self.version = CLIENTS[number]
        self.member_id, self.generation, self.members = "", -1, []
        self.protocol: tuple[str, str] = ("consumer", "a")
        self.wants = "join"
        self.ids = 0


class Player:
    """Plays one script; `world` sends requests and collects answers."""

    def __init__(self, world: Any, group_id: str) -> None:
        self.world = world
        self.group_id = group_id
        self.clients = [Client(i) for i in range(len(CLIENTS))]
        self.names: dict[str, str] = {"": ""}

    def play(self, script: list[Step]) -> list[list[Answer]]:
        return [self.step(*step) for step in script]

    def step(self, kind: str, number: int, protocols: int) -> list[Answer]:
        client = self.clients[number]
        if not self.world.is_busy(number):
            request, version = self.request(kind, client, PROTOCOLS[protocols])
            self.world.send(number, request, version)
        collected = sorted(self.world.collect(), key=lambda pair: pair[0])
        for n, response in collected:
            self.name(self.clients[n], getattr(response, "member_id", ""))
        answers = [self.learn(self.clients[n], response) for n, response in collected]
        group = self.world.describe(self.group_id)
        answers.append([-1, "group", group.group_state, sorted(self.called(m.member_id) for m in group.members)])
        return sorted(answers, key=repr)

    def name(self, client: Client, member_id: str) -> None:
        if member_id not in self.names:
            self.names[member_id] = f"{client.number}.{client.ids}"
            client.ids += 1

    def called(self, member_id: str) -> str:
        return self.names.get(member_id, "?")  # given to a client that has not been answered yet

    def request(self, kind: str, client: Client, protocols: Any) -> tuple[Any, int]:
        if kind == "go":
            kind = client.wants
        who = {"group_id": self.group_id, "member_id": client.member_id, "group_instance_id": client.instance}
        if kind in ("join", "forget"):
            if kind == "forget":
                client.member_id = ""
            if client.version < 5:
                del who["group_instance_id"]
            return JoinGroupRequest(
                **{**who, "member_id": client.member_id},
                session_timeout_ms=300_000,
                rebalance_timeout_ms=300_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols],
            ), client.version
        if kind == "sync":
            assignments = [
                SyncGroupRequestAssignment(member_id=m, assignment=self.called(m).encode()) for m in client.members
            ]
            return SyncGroupRequest(
                **who,
                generation_id=client.generation,
                protocol_type=client.protocol[0],
                protocol_name=client.protocol[1],
                assignments=assignments,
            ), 5
        if kind == "heartbeat":
            return HeartbeatRequest(**who, generation_id=client.generation), 4
        if kind == "commit":
            partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
            return OffsetCommitRequest(
                **who,
                generation_id_or_member_epoch=client.generation,
                topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
            ), 8
        member_id = client.member_id if kind == "leave" else ""
        identity = MemberIdentity(member_id=member_id, group_instance_id=client.instance)
        return LeaveGroupRequest(group_id=self.group_id, members=[identity]), 5

    def learn(self, client: Client, response: Any) -> Answer:
        api = type(response).__name__.removesuffix("Response")
        answer: Answer = [client.number, api]
        if api == "JoinGroup":
            return answer + self.joined(client, response)
        if api == "SyncGroup":
            client.wants = "join" if response.error_code else "heartbeat"
            return [*answer, response.error_code, response.protocol_name, bytes(response.assignment).decode()]
        if api == "Heartbeat":
            if response.error_code:
                client.wants = "join"
            return [*answer, response.error_code]
        if api == "OffsetCommit":
            return [*answer, response.topics[0].partitions[0].error_code]
        return [*answer, response.error_code, [m.error_code for m in response.members]]

    def joined(self, client: Client, response: Any) -> list[Any]:
        code = response.error_code
        client.wants = "join" if code else "sync"
        if code in (0, 79):
            client.member_id = response.member_id
        elif code in (25, 82):
            client.member_id = ""
        if code == 0:
            client.generation = response.generation_id
            client.protocol = (response.protocol_type or "consumer", response.protocol_name)
            client.members = [m.member_id for m in response.members]
        return [
            code,
            response.generation_id,
            response.protocol_name or "",
            self.called(response.leader),
            self.names[response.member_id],
            response.skip_assignment,
            sorted(
                [self.called(m.member_id), m.group_instance_id or "", bytes(m.metadata).decode()]
                for m in response.members
            ),
        ]


class Sockets:
    """A world behind TCP: a connection for each client, answers are awaited until it has been quiet for a while."""

    def __init__(self, address: str, quiet_s: float = 0.15) -> None:
        host, _, port = address.rpartition(":")
        self.connections = [socket.create_connection((host, int(port))) for _ in range(len(CLIENTS) + 1)]
        self.waiting: dict[int, tuple[int, int]] = {}
        self.quiet_s = quiet_s

    def is_busy(self, number: int) -> bool:
        return number in self.waiting

    def send(self, number: int, request: Any, version: int) -> None:
        data = encode_request_header(request.API_KEY, version, 1, f"client{number}")
        data += codec(type(request), version).encode(request)
        self.connections[number].sendall(len(data).to_bytes(4, "big") + data)
        self.waiting[number] = (request.API_KEY, version)

    def collect(self) -> list[tuple[int, Any]]:
        answers = []
        while True:
            ready, _, _ = select.select([self.connections[n] for n in self.waiting], [], [], self.quiet_s)
            if not ready:
                return answers
            for connection in ready:
                number = self.connections.index(connection)
                answers.append((number, self.read(number)))

    def read(self, number: int) -> Any:
        connection = self.connections[number]
        key, version = self.waiting.pop(number)
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            more = connection.recv(1 << 16)
            if not more:
                raise ConnectionError(f"closed while client {number} waited for API {key} v{version}")
            data += more
        cls = response_class(key)
        _, position = decode_response_header(data, key, version, 4)
        return codec(cls, version).decode(data, position)[0]

    def describe(self, group_id: str) -> Any:
        last = len(CLIENTS)
        self.send(last, DescribeGroupsRequest(groups=[group_id]), 5)
        return self.read(last).groups[0]

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


def record(address: str, count: int) -> None:
    recorded = []
    for seed in range(count):
        world = Sockets(address)
        script = random_script(seed)
        answers = Player(world, f"script-{seed}-{time.time_ns()}").play(script)
        world.close()
        recorded.append({"script": script, "answers": answers})
        print(seed, len(recorded), flush=True)  # noqa: T201 - a program of its own here
    lines = ",\n".join(json.dumps(r, separators=(",", ":")) for r in recorded)
    RECORDED.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    record(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40)
