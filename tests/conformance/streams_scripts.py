"""Scripts of streams group requests, played to any broker, and the answers in a form that can be compared.

A script is a list of steps: what one member sends next. What a request says (epoch, tasks) follows from the answers
before it, so the same script can be played to Apache Kafka and to this broker.

`python tests/conformance/streams_scripts.py HOST:PORT [COUNT]` plays random scripts to a broker over a socket (a fresh
Apache Kafka with group.streams.initial.rebalance.delay.ms=0, group.streams.assignment.interval.ms=0 and
group.streams.num.standby.replicas=1) and writes streams_groups.json: see test_streams_groups_as_kafka.py.
"""

from __future__ import annotations

import json
import random
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protocol.api import response_class
from protocol.codegen import codec
from protocol.header import decode_response_header, encode_request_header
from protocol.messages.cluster import FindCoordinatorRequest, MetadataRequest, MetadataRequestTopic
from protocol.messages.offsets import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.messages.streams_group import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestEndpoint,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTaskIds,
    StreamsGroupHeartbeatRequestTaskOffset,
    StreamsGroupHeartbeatRequestTopicInfo,
    StreamsGroupHeartbeatRequestTopology,
)
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest

RECORDED = Path(__file__).with_name("streams_groups.json")
TOPICS = {"s-in": 4, "s-log": 4, "s-two": 2, "s-else": 1}
SOURCES = (("s-in", 4), ("s-two", 2), ("s-else", 1))
PROCESSES = ("p-0", "p-1", "p-1", "p-2")  # of each member: two of them share one
STATIC = (0, 3)  # the members with an instance id; each comes back under another member id
KINDS = (
    *["ack"] * 12,
    *["beat"] * 3,
    *["join"] * 3,
    *["gone"] * 2,
    *["commit"] * 2,
    "leave",
    "late",
    "claim",
    "rack",
    "offsets",
    "endpoint",
)
UNRELEASED = 111

Call = Callable[[Any, int], Any]
Step = list[Any]  # kind, member, a number
Answer = list[Any]  # member, what it did, then what the answer says
Tasks = dict[str, list[int]]


def random_script(seed: int, length: int = 40) -> list[Step]:
    rng = random.Random(seed)
    members = rng.sample(range(len(PROCESSES)), rng.choice((2, 3, 4)))
    return [["join", members[0], 0]] + [
        [rng.choice(KINDS), rng.choice(members), rng.randrange(12)] for _ in range(length)
    ]


def topology() -> StreamsGroupHeartbeatRequestTopology:
    """A subtopology with a store and one without."""
    stateful = StreamsGroupHeartbeatRequestSubtopology(
        subtopology_id="0",
        source_topics=["s-in"],
        state_changelog_topics=[StreamsGroupHeartbeatRequestTopicInfo(name="s-log")],
    )
    stateless = StreamsGroupHeartbeatRequestSubtopology(subtopology_id="1", source_topics=["s-two"])
    return StreamsGroupHeartbeatRequestTopology(epoch=0, subtopologies=[stateful, stateless])


def task_ids(tasks: Tasks) -> list[StreamsGroupHeartbeatRequestTaskIds]:
    return [StreamsGroupHeartbeatRequestTaskIds(subtopology_id=s, partitions=p) for s, p in tasks.items()]


def told(found: Any) -> Tasks | None:
    return None if found is None else {t.subtopology_id: t.partitions for t in found}


class Member:
    """What one member knows."""

    def __init__(self) -> None:
        self.epoch = 0
        self.previous = 0
        self.active: Tasks = {}
        self.standby: Tasks = {}
        self.before: tuple[Tasks, Tasks] = ({}, {})
        self.endpoint_epoch = 0


class Player:
    """Plays one script to a broker."""

    def __init__(self, call: Call, group_id: str) -> None:
        self.call = call
        self.group_id = group_id
        self.members = [Member() for _ in PROCESSES]
        self.lives = [0 for _ in PROCESSES]  # how often a static member went for a while

    def play(self, script: list[Step]) -> list[Answer]:
        answers = [getattr(self, "_" + kind)(number, argument) for kind, number, argument in script]
        return [*answers, self.describe()]

    def describe(self) -> Answer:
        (found,) = self.call(StreamsGroupDescribeRequest(group_ids=[self.group_id]), 1).groups
        members = [
            [
                m.member_id,
                m.member_epoch,
                m.process_id,
                m.rack_id,
                m.instance_id,
                [[o.subtopology_id, o.partition, o.offset] for o in m.task_offsets],
                *map(told, (a.active_tasks, a.standby_tasks, target)),
            ]
            for m in sorted(found.members, key=lambda m: str(m.member_id))
            for a, target in ((m.assignment, m.target_assignment.active_tasks),)
        ]
        names = [found.assignor_name, found.topology_description_status]
        epochs = [found.group_epoch, found.assignment_epoch]
        return [-1, "describe", found.error_code, found.group_state, *epochs, members, names]

    def _join(self, number: int, argument: int) -> Answer:
        has_endpoint = number == 0 and argument % 4 < 3
        endpoint = StreamsGroupHeartbeatRequestEndpoint(host=f"h{number}", port=1) if has_endpoint else None
        return self._beat_with(
            number,
            member_epoch=0,
            topology=topology(),
            rebalance_timeout_ms=60_000,
            process_id=PROCESSES[number],
            user_endpoint=endpoint,
            client_tags=[],
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
        )

    def _beat(self, number: int, argument: int) -> Answer:
        return self._beat_with(number)

    def _ack(self, number: int, argument: int) -> Answer:
        member = self.members[number]
        return self._owning(number, member.active, member.standby)

    def _late(self, number: int, argument: int) -> Answer:
        """The reply to the last heartbeat was lost."""
        member = self.members[number]
        return self._owning(number, member.active, member.standby, member_epoch=member.previous)

    def _claim(self, number: int, argument: int) -> Answer:
        """The member has not given back yet what it had before."""
        return self._owning(number, *self.members[number].before)

    def _rack(self, number: int, argument: int) -> Answer:
        return self._beat_with(number, rack_id=f"r{argument % 2}")

    def _offsets(self, number: int, argument: int) -> Answer:
        """How much state of two tasks the member has; the second list is left out, empty or full."""
        offsets = [
            StreamsGroupHeartbeatRequestTaskOffset(subtopology_id="0", partition=p % 4, offset=10 * argument + p)
            for p in (argument, argument + 1)
        ]
        return self._beat_with(number, task_offsets=offsets, task_end_offsets=[None, [], offsets][argument % 3])

    def _endpoint(self, number: int, argument: int) -> Answer:
        return self._beat_with(
            number, user_endpoint=StreamsGroupHeartbeatRequestEndpoint(host=f"e{argument % 3}", port=argument)
        )

    def _gone(self, number: int, argument: int) -> Answer:
        """A static member leaves for a while; it comes back under the same member id or another one."""
        answer = self._beat_with(number, member_epoch=-2)
        if answer[2] == 0:
            self.members[number] = Member()
            self.lives[number] += argument % 2
        return answer

    def _leave(self, number: int, argument: int) -> Answer:
        answer = self._beat_with(number, member_epoch=-1)
        self.members[number] = Member()
        return answer

    def _commit(self, number: int, argument: int) -> Answer:
        """A partition and an epoch, both by the number."""
        topic, partitions = SOURCES[argument % 3]
        epoch = max(self.members[number].epoch - argument // 3, 0)
        partition = OffsetCommitRequestPartition(partition_index=argument % partitions, committed_offset=1)
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=epoch,
            member_id=self._name(number),
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        return [number, "commit", self.call(request, 9).topics[0].partitions[0].error_code]

    def _owning(self, number: int, active: Tasks, standby: Tasks, **more: Any) -> Answer:
        lists = {"active_tasks": task_ids(active), "standby_tasks": task_ids(standby), "warmup_tasks": []}
        return self._beat_with(number, **lists, **more)

    def _name(self, number: int) -> str:
        return f"m-{number}" + "+" * self.lives[number]

    def _beat_with(self, number: int, **fields: Any) -> Answer:
        member = self.members[number]
        fields = {"member_epoch": member.epoch, "endpoint_information_epoch": member.endpoint_epoch, **fields}
        if fields["member_epoch"] == 0 and "topology" not in fields:
            return self._join(number, 0)
        if number in STATIC:
            fields["instance_id"] = f"i-{number}"
        request = StreamsGroupHeartbeatRequest(group_id=self.group_id, member_id=self._name(number), **fields)
        reply = self.call(request, 1)
        if reply.error_code:
            if fields["member_epoch"] >= 0 and reply.error_code != UNRELEASED:
                self.members[number] = Member()  # fenced, or never known: it starts anew
            return [number, "heartbeat", reply.error_code]
        active, standby = told(reply.active_tasks), told(reply.standby_tasks)
        if fields["member_epoch"] >= 0:
            member.previous, member.epoch = member.epoch, reply.member_epoch
            member.endpoint_epoch = reply.endpoint_information_epoch
            if active is not None and standby is not None:
                member.before = member.active, member.standby
                member.active, member.standby = active, standby
        endpoints = reply.partitions_by_user_endpoint
        shown = None if endpoints is None else sorted(e.user_endpoint.host for e in endpoints)
        status = [s.status_code for s in reply.status]
        known = [reply.endpoint_information_epoch, shown]
        told_once = [reply.task_offset_interval_ms, reply.acceptable_recovery_lag]
        return [number, "heartbeat", 0, reply.member_epoch, status, known, active, standby, told_once]


# -- recording --------------------------------------------------------------------------------------------------------


class Socket:
    """A connection to a broker that may still be starting its coordinator."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.sent = 0

    def call(self, request: Any, version: int) -> Any:
        while True:
            reply = self._call(request, version)
            if getattr(reply, "error_code", 0) not in (14, 15, 16):
                return reply

    def _call(self, request: Any, version: int) -> Any:
        self.sent += 1
        data = encode_request_header(request.API_KEY, version, self.sent, "script")
        data += codec(type(request), version).encode(request)
        self.socket.sendall(len(data).to_bytes(4, "big") + data)
        body = self._receive(int.from_bytes(self._receive(4), "big"))
        _, position = decode_response_header(body, request.API_KEY, version)
        return codec(response_class(request.API_KEY), version).decode(body, position)[0]

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, "the connection was closed"
            data += more
        return data


def record(address: str, count: int) -> None:
    call = Socket(address).call
    wanted = [CreatableTopic(name=n, num_partitions=p, replication_factor=1) for n, p in TOPICS.items()]
    call(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), 7)
    while call(FindCoordinatorRequest(key_type=0, coordinator_keys=["s0"]), 4).coordinators[0].error_code:
        pass  # the offsets topic is being made
    while call(MetadataRequest(topics=[MetadataRequestTopic(name=n) for n in TOPICS]), 9).topics[-1].error_code:
        pass
    lines = []
    for seed in range(count):
        script = random_script(seed)
        answers = Player(call, f"s{seed}").play(script)
        lines.append(json.dumps({"script": script, "answers": answers}, separators=(",", ":")))
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    record(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40)
