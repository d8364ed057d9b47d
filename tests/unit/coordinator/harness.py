"""Drives a GroupMachine as the runtime does, with a clock that the test moves: requests in, replies out, replay.

Every reply goes through bytes in the version of its request, so a test sees what a client of that version sees. At
the end of a `with` block, and whenever `check` is called, a second shard is built from the log alone: both must match.
"""

from __future__ import annotations

from types import SimpleNamespace

from unit.coordinator.harness_parts import RANGE, LogList, Reply

from broker.base.context import Context
from broker.coordinator.groups.classic.commit_checks import on_offset_commit_accepted
from broker.coordinator.groups.machine import GroupMachine
from broker.handlers.classic_group import heartbeat, join_group, leave_group, sync_group
from broker.handlers.group_admin import delete_groups, describe_groups, list_groups
from broker.handlers.offset_delete import offset_delete
from broker.turn.decision import LATER
from broker.wire.errors import error_response
from protocol.codegen import codec
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from protocol.messages.coordinator_records import OffsetCommitKey, OffsetCommitValue
from protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from protocol.messages.offsets import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from storage.files.env import Rng

START_MS = 1_700_000_000_000

DEFAULTS = {
    "group_min_session_timeout_ms": 6_000,
    "group_max_session_timeout_ms": 1_800_000,
    "group_initial_rebalance_delay_ms": 0,
    "group_max_size": 2**31 - 1,
    "offsets_retention_minutes": 10_080,
    "offsets_retention_check_interval_ms": 600_000,
    "archive_retain_group": "",
}


class ShardHarness:
    """One shard, its log, its timers and its waiting requests."""

    def __init__(self, seed: int = 0, **config: int) -> None:
        self.config = SimpleNamespace(**{**DEFAULTS, **config})
        self.rng = Rng(seed)
        self.now_ms = START_MS
        self.log = LogList()
        self.replies: dict[int, Reply] = {}
        self.topics: dict[str, SimpleNamespace] = {}
        self.last_token = 0
        self._start()

    def _start(self) -> None:
        self.timers: dict[object, int] = {}
        self.deadlines = SimpleNamespace(set=self.set_timer)  # as Shard has them
        self.shard = self.rebuilt()
        self._apply(self.shard.on_load(self._context()))

    def rebuilt(self) -> GroupMachine:
        shard = GroupMachine(0, self.config)
        for offset, (key, value) in enumerate(self.log):
            shard.replay(key, value, offset)
        return shard

    def __enter__(self) -> ShardHarness:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.check()

    def check(self) -> None:
        """The log alone makes the same shard; groups between two settled states are left out on both sides."""
        live, rebuilt = self.shard.fingerprint(), self.rebuilt().fingerprint()
        assert live["offsets"] == rebuilt["offsets"]
        for group_id, facts in live["groups"].items():
            assert rebuilt["groups"][group_id] == facts
        assert set(rebuilt["groups"]) == set(self.shard.groups)

    # -- time ----------------------------------------------------------------------------------------------------

    def advance(self, ms: int = 0) -> None:
        """Let time pass; timers run in the order in which they are due."""
        end_ms = self.now_ms + ms
        while due := [(at, str(name), name) for name, at in self.timers.items() if at <= end_ms]:
            at, _, name = min(due)
            self.now_ms = max(self.now_ms, at)
            del self.timers[name]
            self._apply(self.shard.on_timer(name, self._context()))
        self.now_ms = end_ms

    def restart(self) -> None:
        """kill -9: what is not in the log is gone, and who waited waits no more."""
        self.replies.clear()
        self._start()

    # -- requests ------------------------------------------------------------------------------------------------

    def _context(self, version: int = 0, token: int | None = None, client: str = "client") -> Context:
        return Context(
            self.now_ms, self.rng, api_version=version, client_id=client, client_host="/127.0.0.1", token=token
        )

    def _apply(self, result: object) -> None:
        self._append(result.records)
        for name, deadline_ms in result.timers:
            self.set_timer(name, deadline_ms)
        for token, response in result.wake:
            self.replies.pop(token).give(response)
        for shard, write in result.writes:
            assert shard is self.runtime
            self._append(write.records)

    def _append(self, records: object) -> None:
        for key, value in records:
            self.shard.replay(key, value, len(self.log))
            self.log.append((key, value))

    def set_timer(self, name: object, deadline_ms: int | None) -> None:
        if deadline_ms is None:
            self.timers.pop(name, None)
        else:
            self.timers[name] = deadline_ms

    def send(self, handler: object, view: object, request: object, version: int, client: str = "client") -> Reply:
        """Send a request; a refusal becomes a reply as the router would make it."""
        self.last_token += 1
        token = self.last_token
        reply = Reply(token, version)
        ctx = self._context(version, token, client)
        codec(type(request), version).encode(request)
        try:
            result = handler(view, ctx, request)
        except KafkaError as error:
            reply.give(error_response(request, type(request).API_KEY, version, error.code, error.message))
            return reply
        if result.reply is LATER:
            self.replies[token] = reply
        self._apply(result)
        if result.reply is not LATER:
            reply.give(result.reply)
        return reply

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        version: int = 9,
        client: str = "client",
    ) -> Reply:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms if version >= 1 else -1,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols],
        )
        return self.send(join_group, self.shard, request, version, client)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        protocol: tuple[str | None, str | None] = ("consumer", "range"),
        version: int = 5,
    ) -> Reply:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol[0] if version >= 5 else None,
            protocol_name=protocol[1] if version >= 5 else None,
            assignments=[SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in (assignments or {}).items()],
        )
        return self.send(sync_group, self.shard, request, version)

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None, version: int = 4
    ) -> Reply:
        request = HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return self.send(heartbeat, self.shard, request, version)

    def leave(self, *members: str | tuple[str, str | None], group: str = "g", version: int = 5) -> Reply:
        pairs = [(m, None) if isinstance(m, str) else m for m in members]
        if version < 3:
            request = LeaveGroupRequest(group_id=group, member_id=pairs[0][0])
        else:
            identities = [MemberIdentity(member_id=m, group_instance_id=i) for m, i in pairs]
            request = LeaveGroupRequest(group_id=group, members=identities)
        return self.send(leave_group, self.shard, request, version)

    def commit_check(
        self,
        generation: int,
        member_id: str = "",
        instance: str | None = None,
        *,
        group: str = "g",
        version: int = 9,
    ) -> ErrorCode:
        """The group's say about an OffsetCommit, with what an accepted one does to the timers."""
        code = self.shard.check_offset_commit(group, version, generation, member_id, instance)
        found = self.shard.groups.get(group)
        if code is ErrorCode.NONE and found is not None and found.group_type == "classic":
            for name, deadline_ms in on_offset_commit_accepted(found, member_id, self.now_ms):
                self.set_timer(name, deadline_ms)
        return code

    # -- the broker around the shard -----------------------------------------------------------------------------

    @property
    def runtime(self) -> ShardHarness:
        return self

    @property
    def machine(self) -> GroupMachine:
        return self.shard

    @property
    def metadata(self) -> ShardHarness:
        return self

    @property
    def groups(self) -> ShardHarness:
        """The shards of the broker: this one."""
        return self

    def require(self, group_id: str, ctx: Context) -> ShardHarness:
        if group_id.startswith("elsewhere"):
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return self

    def own(self, ctx: Context) -> list[ShardHarness]:
        return [self]

    def describe(self, *groups: str, version: int = 6, operations: bool = False) -> list[object]:
        request = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations)
        return self.send(describe_groups, self, request, version).groups

    def list_groups(self, states: tuple[str, ...] = (), types: tuple[str, ...] = (), version: int = 5) -> list[object]:
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        return self.send(list_groups, self, request, version).groups

    def delete(self, *groups: str, version: int = 2) -> list[tuple[str, int]]:
        reply = self.send(delete_groups, self, DeleteGroupsRequest(groups_names=list(groups)), version)
        return [(r.group_id, r.error_code) for r in reply.results]

    def delete_offsets(self, topics: dict[str, list[int]] | list[tuple[str, list[int]]], group: str = "g") -> Reply:
        """OffsetDelete; pairs instead of a dict may name a topic twice."""
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name, partitions=[OffsetDeleteRequestPartition(partition_index=p) for p in partitions]
                )
                for name, partitions in (topics.items() if isinstance(topics, dict) else topics)
            ],
        )
        return self.send(offset_delete, self, request, 0)

    def add_topic(self, name: str, partitions: int) -> None:
        self.topics[name] = SimpleNamespace(name=name, partitions=[None] * partitions)

    # -- short cuts ----------------------------------------------------------------------------------------------

    def commit(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        group: str = "g",
        version: int = 4,
        expire_ms: int = -1,
        topic_id: bytes = bytes(16),
        commit_ms: int | None = None,
    ) -> None:
        """Log a committed offset, no questions asked."""
        key = OffsetCommitKey(group=group, topic=topic, partition=partition)
        value = OffsetCommitValue(
            offset=offset,
            commit_timestamp=self.now_ms if commit_ms is None else commit_ms,
            expire_timestamp=expire_ms,
            topic_id=topic_id,
        )
        body = codec(OffsetCommitValue, version).encode(value)
        key_bytes = b"\x00\x01" + codec(OffsetCommitKey, 0).encode(key)
        self._append([(key_bytes, version.to_bytes(2, "big") + body)])

    def offset(self, topic: str, partition: int, group: str = "g") -> int | None:
        found = self.shard.offsets.get(group, topic, partition)
        return None if found is None else found.offset

    def group(self, group: str = "g") -> object:
        return self.shard.groups[group]

    def state(self, group: str = "g") -> str:
        found = self.shard.groups.get(group)
        return "Dead" if found is None else found.state.value

    def new_id(self, **how: object) -> str:
        """The member id of a dynamic client that has asked for one."""
        reply = self.join(**how)
        assert reply.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return reply.member_id

    def stable(self, members: int = 1, *, instances: tuple[str | None, ...] = (), **how: object) -> list[str]:
        """A Stable group: its leader first, assignments "a0", "a1" ... in order. Generation 1."""
        names = instances or (None,) * members
        joined = []
        for instance in names:
            member_id = "" if instance is not None else self.new_id(**how)
            joined.append(self.join(member_id, instance=instance, **how))
        self.advance(self.config.group_initial_rebalance_delay_ms)
        ids = [reply.member_id for reply in joined]
        group = how.get("group", "g")
        protocol = (joined[0].protocol_type, joined[0].protocol_name)
        assignments = {m: b"a%d" % i for i, m in enumerate(ids)}
        for member_id in reversed(ids):
            is_leader = member_id == joined[0].leader
            given = assignments if is_leader else None
            self.sync(member_id, joined[0].generation_id, given, group=group, protocol=protocol)
        assert self.state(group) == "Stable"
        return ids
