"""Classic groups under random clients: whatever they do in whatever order, these stay true.

- one leader, who is a member; every static instance has one member; counters agree with what they count
- the generation only grows while the broker lives, and a state follows one that it may follow
- no request is answered twice; a parked one belongs to exactly one member and one place in it, or is answered
- who is told a generation is a member of it, all of one generation are told the same leader and protocol, and the
  leader is told of everybody
- the log alone makes the same groups
"""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from budget import budget
from hypothesis import HealthCheck
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from unit.coordinator.harness import ShardHarness
from unit.coordinator.harness_parts import subscription

from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.groups.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    TRANSITIONS,
    State,
)
from protocol.errors import ErrorCode

PROTOCOLS = (
    (("range", subscription("t")),),
    (("range", subscription("t", "u")), ("roundrobin", subscription("t"))),
    (("roundrobin", subscription("v")), ("range", subscription("v"))),
)
SESSIONS_MS = (6_000, 10_000, 45_000)
REBALANCES_MS = (6_000, 20_000, 60_000)


class Client:
    """What one process knows of its membership, right or wrong."""

    def __init__(self, instance: str | None, version: int) -> None:
        self.instance = instance
        self.version = version
        self.member_id = ""
        self.generation = -1
        self.protocol: tuple[str | None, str | None] = (None, None)
        self.join = None
        self.sync = None
        self.members: list[str] = []
        self.wants = "join"  # what a well-behaved client does next


class ClassicGroups(RuleBasedStateMachine):
    """Five clients, two of them static, one static instance used by two processes."""

    @initialize(delay_ms=st.sampled_from([0, 0, 3_000]), max_size=st.sampled_from([2**31 - 1, 3]), grown=st.booleans())
    def start(self, delay_ms: int, max_size: int, grown: bool) -> None:
        self.h = ShardHarness(group_initial_rebalance_delay_ms=delay_ms, group_max_size=max_size)
        self.clients = [Client(i, v) for i, v in ((None, 9), (None, 9), (None, 3), ("i", 9), ("i", 5), ("j", 9))]
        self.generation = 0
        self.told: dict[int, tuple[str, str]] = {}
        self.waiting: list[object] = []
        self.state = DEAD
        self.moves: list[tuple[State, State]] = []
        moves = self.moves
        plain = ClassicGroup.rebalance_to
        self.undo = lambda: setattr(ClassicGroup, "rebalance_to", plain)

        def move(group: ClassicGroup, state: State, now_ms: int) -> None:
            moves.append((group.state, state))
            plain(group, state, now_ms)

        ClassicGroup.rebalance_to = move
        if grown:
            for _ in range(4):
                self.everybody_proceeds(PROTOCOLS[1], 3_000)

    def teardown(self) -> None:
        if hasattr(self, "h"):
            self.undo()
            self.h.check()

    # -- what well-behaved clients do ----------------------------------------------------------------------------

    def proceed(self, client: Client, protocols: object) -> None:
        if client.join is not None or client.sync is not None:
            return
        if client.wants == "join":
            self.send_join(client, protocols, 10_000, 20_000)
        elif client.wants == "sync":
            self.send_sync(client, client.members)
        else:
            self.send_heartbeat(client)
        self.look()

    @rule(who=st.integers(0, 5), protocols=st.sampled_from(PROTOCOLS))
    def one_proceeds(self, who: int, protocols: object) -> None:
        self.proceed(self.clients[who], protocols)

    @rule(protocols=st.sampled_from(PROTOCOLS), ms=st.sampled_from([0, 3_000]))
    def everybody_proceeds(self, protocols: object, ms: int) -> None:
        for client in self.clients:
            self.proceed(client, protocols)
        self.wait(ms)

    @rule(protocols=st.sampled_from(PROTOCOLS), n=st.integers(1, 5))
    def some_proceed_for_a_while(self, protocols: object, n: int) -> None:
        for _ in range(4):
            for client in self.clients[:n]:
                self.proceed(client, protocols)
            self.wait(0)

    # -- and what others do --------------------------------------------------------------------------------------

    @rule(
        who=st.integers(0, 5),
        protocols=st.sampled_from(PROTOCOLS),
        session_ms=st.sampled_from(SESSIONS_MS),
        rebalance_ms=st.sampled_from(REBALANCES_MS),
        forget=st.booleans(),
    )
    def join(self, who: int, protocols: object, session_ms: int, rebalance_ms: int, forget: bool) -> None:
        if forget:
            self.clients[who].member_id = ""
        self.send_join(self.clients[who], protocols, session_ms, rebalance_ms)
        self.look()

    def send_join(self, client: Client, protocols: object, session_ms: int, rebalance_ms: int) -> None:
        client.join = self.h.join(
            client.member_id,
            instance=client.instance,
            protocols=protocols,
            session_ms=session_ms,
            rebalance_ms=rebalance_ms,
            version=client.version,
        )
        self.waiting.append(client.join)

    @rule(who=st.integers(0, 5), forget_some=st.booleans())
    def sync(self, who: int, forget_some: bool) -> None:
        client = self.clients[who]
        self.send_sync(client, client.members[1:] if forget_some else client.members)
        self.look()

    def send_sync(self, client: Client, given: list[str]) -> None:
        client.sync = self.h.sync(
            client.member_id,
            client.generation,
            {m: f"{client.generation}:{m}".encode() for m in given},
            instance=client.instance,
            protocol=client.protocol,
            version=4,
        )
        self.waiting.append(client.sync)

    @rule(who=st.integers(0, 5))
    def heartbeat(self, who: int) -> None:
        self.send_heartbeat(self.clients[who])
        self.look()

    def send_heartbeat(self, client: Client) -> None:
        reply = self.h.heartbeat(client.member_id, client.generation, instance=client.instance)
        group = self.h.shard.groups.get("g")
        if reply.error_code == ErrorCode.NONE:
            assert client.member_id in group.members
            assert group.generation_id == client.generation
        else:
            client.wants = "join"
            if reply.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
                client.member_id = ""

    @rule(who=st.integers(0, 5))
    def leave(self, who: int) -> None:
        client = self.clients[who]
        self.h.leave((client.member_id, client.instance))
        self.look()

    @rule(who=st.integers(0, 5))
    def commit(self, who: int) -> None:
        client = self.clients[who]
        code = self.h.commit_check(client.generation, client.member_id, client.instance)
        group = self.h.shard.groups.get("g")
        if code is ErrorCode.NONE and client.generation >= 0:
            assert client.member_id in group.members
            assert group.generation_id == client.generation
            assert group.state in (STABLE, PREPARING_REBALANCE)
            self.h.commit("t", 0, client.generation)

    @rule(ms=st.sampled_from([0, 1, 500, 3_000, 6_000, 20_000, 60_000, 310_000]))
    def wait(self, ms: int) -> None:
        self.h.advance(ms)
        self.look()

    @precondition(lambda self: self.h.state() != "Dead")
    @rule()
    def delete(self) -> None:
        before = self.h.state()
        ((_, code),) = self.h.delete("g")
        if code == ErrorCode.NON_EMPTY_GROUP:
            assert before not in ("Empty", "Dead")
        elif code == ErrorCode.NONE:
            assert not self.h.shard.has_group("g")
            self.generation = 0
            self.told.clear()

    @precondition(lambda self: len(self.h.log) > 3 and self.h.state() != "Dead")
    @rule()
    def crash(self) -> None:
        self.h.restart()
        self.waiting.clear()
        self.told.clear()
        group = self.h.shard.groups.get("g")
        self.generation = group.generation_id if group else 0
        for client in self.clients:
            client.join = client.sync = None

    # -- what clients learn --------------------------------------------------------------------------------------

    def look(self) -> None:
        group = self.h.shard.groups.get("g")
        if group is None:
            self.generation = 0
            self.told.clear()
        for client in self.clients:
            if client.join is not None and not client.join.parked:
                self.joined(client, client.join.response)
                client.join = None
            if client.sync is not None and not client.sync.parked:
                self.synced(client, client.sync.response)
                client.sync = None

    def joined(self, client: Client, response: object) -> None:
        code = response.error_code
        client.wants = "sync" if code == ErrorCode.NONE else "join"
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = response.member_id
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.member_id = ""
        elif code == ErrorCode.NONE:
            client.member_id, client.generation = response.member_id, response.generation_id
            client.protocol = (response.protocol_type, response.protocol_name)
            client.members = [m.member_id for m in response.members]
            if client.members:
                assert response.leader == response.member_id
                assert response.member_id in client.members
                assert len(set(client.members)) == len(client.members)
            protocol = response.protocol_name
            assert self.told.setdefault(client.generation, protocol) == protocol
        else:
            assert code in (
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                ErrorCode.REBALANCE_IN_PROGRESS,
            )

    def synced(self, client: Client, response: object) -> None:
        client.wants = "heartbeat" if response.error_code == ErrorCode.NONE else "join"
        if response.error_code == ErrorCode.NONE and response.assignment:
            generation, _, member_id = response.assignment.decode().partition(":")
            assert int(generation) == client.generation
            # a static member may have got what was meant for the id before
            assert member_id == client.member_id or client.instance is not None

    # -- what stays true -----------------------------------------------------------------------------------------

    @invariant()
    def group_is_consistent(self) -> None:
        if not hasattr(self, "h"):
            return
        group = self.h.shard.groups.get("g")
        if group is None:
            return
        members = group.members
        assert group.generation_id >= self.generation
        self.generation = group.generation_id
        assert (group.state is EMPTY) == (not members) or group.state is PREPARING_REBALANCE
        assert group.leader in members if members else group.leader is None
        statics = {m.group_instance_id: m.member_id for m in members.values() if m.group_instance_id}
        assert group.static_members == statics
        assert group.joined == sum(m.join_token is not None for m in members.values())
        assert not group.pending_joins & members.keys()
        assert group.pending_syncs <= members.keys()
        support: dict[str, int] = {}
        for member in members.values():
            for name, _ in member.protocols:
                support[name] = support.get(name, 0) + 1
        assert {k: v for k, v in group._support.items() if v} == support
        if members:
            assert max(support.values()) == len(members)

    @invariant()
    def every_parked_request_waits_in_one_place(self) -> None:
        if not hasattr(self, "h"):
            return
        group = self.h.shard.groups.get("g")
        tokens = []
        for member in group.members.values() if group else ():
            if member.join_token is not None:
                assert group.state is PREPARING_REBALANCE
                tokens.append(member.join_token)
            if member.sync_token is not None:
                assert group.state is COMPLETING_REBALANCE
                tokens.append(member.sync_token)
        assert len(set(tokens)) == len(tokens)
        assert set(tokens) == set(self.h.replies)
        self.waiting = [reply for reply in self.waiting if reply.parked]
        assert {reply.token for reply in self.waiting} == set(tokens)

    @invariant()
    def everybody_who_is_waited_for_has_a_timer(self) -> None:
        if not hasattr(self, "h"):
            return
        group = self.h.shard.groups.get("g")
        if group is None:
            return
        timers = self.h.timers
        for member in group.members.values():
            assert member.session_timer in timers or member.excused()
        for member_id in group.pending_joins:
            assert ("session", "g", member_id) in timers
        assert (group.state is PREPARING_REBALANCE) == (group.join_timer in timers)
        if group.state is COMPLETING_REBALANCE:
            assert group.sync_timer in timers
        if group.pending_syncs:
            assert group.sync_timer in timers

    @invariant()
    def states_follow_each_other_as_the_table_says(self) -> None:
        if hasattr(self, "h"):
            assert all(after in TRANSITIONS[before] for before, after in self.moves)
            self.moves.clear()

    @invariant()
    def log_makes_the_same_groups(self) -> None:
        if hasattr(self, "h"):
            self.h.check()


ClassicGroups.TestCase.settings = budget(
    40,
    stateful_step_count=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
TestClassicGroups = pytest.mark.heavy(ClassicGroups.TestCase)
