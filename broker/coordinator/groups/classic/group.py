"""A classic group: its members, its states, and what a logged record makes of it.

The life of a group
-------------------
    Empty                no members. Made by the first JoinGroup, or left behind when the last member goes
    PreparingRebalance   members are asked to join again; their JoinGroups are parked until all have, or time is up
    CompletingRebalance  a new generation is chosen; the SyncGroups are parked until the leader's brings the assignment
    Stable               every member can have its assignment
    Dead                 deleted. No group in this state is ever found; the name is what describes an unknown group

TRANSITIONS below says which state may come after which.

What is logged and what is not
------------------------------
A GroupMetadata record describes a *settled* group: Empty (no members in it) or Stable (all members with subscription
and assignment). Only `replay_record` and `replay_tombstone` move a group into those states, live and at loading alike.
Everything between two settled states is volatile, as it is in Kafka, and is changed by the handlers directly:
    - the states PreparingRebalance and CompletingRebalance, the generation being agreed on, its protocol and leader;
    - members that join, leave, change their protocols or time-outs on the way there;
    - who is parked (`join_token`, `sync_token`), who still owes a SyncGroup (`pending_syncs`), which member ids were
      given out but not used yet (`pending_joins`), the delay of a first rebalance, and all timers.
After a crash the group is what its last record says, and the clients' next heartbeats start it afresh. When an append
fails the shard is thrown away with all this and loaded again, so a volatile change never needs to be taken back.

A Stable or Empty group is therefore always exactly what the log says: tests compare the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from broker.coordinator.groups.classic.member import Member, Protocols
from broker.coordinator.groups.classic.subscription import subscribed_topics
from broker.coordinator.placement import java_string_hash

if TYPE_CHECKING:
    from broker.coordinator.result import Token
    from protocol.messages.coordinator_records import GroupMetadataValue

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


class State(Enum):
    """The states of a classic group; the value is what clients are told."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY: Final = State.EMPTY
PREPARING_REBALANCE: Final = State.PREPARING_REBALANCE
COMPLETING_REBALANCE: Final = State.COMPLETING_REBALANCE
STABLE: Final = State.STABLE
DEAD: Final = State.DEAD

TRANSITIONS: Final[Mapping[State, frozenset[State]]] = {
    EMPTY: frozenset({PREPARING_REBALANCE, DEAD}),
    PREPARING_REBALANCE: frozenset({COMPLETING_REBALANCE, EMPTY, DEAD}),
    COMPLETING_REBALANCE: frozenset({STABLE, PREPARING_REBALANCE, DEAD}),
    STABLE: frozenset({PREPARING_REBALANCE, DEAD}),
    DEAD: frozenset(),
}


class ClassicGroup:
    """One group of the classic protocol; see the module's text for what of it is logged."""

    __slots__ = (
        "_subscribed",
        "_subscriptions",
        "_support",
        "current_state_timestamp_ms",
        "generation_id",
        "group_id",
        "initial_delay_ms",
        "initial_remaining_ms",
        "is_initial_rebalance",
        "is_logged",
        "join_timer",
        "joined",
        "leader",
        "member_added",
        "members",
        "pending_joins",
        "pending_syncs",
        "protocol_name",
        "protocol_type",
        "state",
        "static_members",
        "sync_timer",
    )

    group_type: Final = "classic"

    def __init__(self, group_id: str, now_ms: int = -1) -> None:
        self.group_id = group_id
        self.state = EMPTY
        self.generation_id = 0
        self.protocol_type = ""  # "" until a member brings one
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.current_state_timestamp_ms = now_ms
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.pending_joins: set[str] = set()
        self.pending_syncs: set[str] = set()
        self.joined = 0  # members with a parked JoinGroup
        self.is_logged = False
        self.is_initial_rebalance = False  # PreparingRebalance that began Empty: a delay, not the members, ends it
        self.member_added = False
        self.initial_delay_ms = 0
        self.initial_remaining_ms = 0
        self.join_timer = ("join", group_id)
        self.sync_timer = ("sync", group_id)
        self._support: dict[str, int] = {}  # protocol -> how many members know it
        self._subscriptions: list[bytes] | None = []  # of the current generation
        self._subscribed: frozenset[str] | bool | None = False  # False: not looked at yet

    # -- queries -------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    def has_all_joined(self) -> bool:
        """Whether nobody is left to wait for."""
        return self.joined == len(self.members) and not self.pending_joins

    def rebalance_timeout_ms(self) -> int:
        """How long a rebalance may take: the longest that a member asks for."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols can be in the group.

        | state | type                 | protocols                              |
        |-------|----------------------|----------------------------------------|
        | Empty | not empty            | at least one                           |
        | other | the group's own      | one that every member knows, at least  |
        """
        if self.state is EMPTY:
            return bool(protocol_type and protocols)
        everyone = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._support.get(name, 0) == everyone for name, _ in protocols
        )

    def select_protocol(self) -> str | None:
        """The winner of a vote, in which each member is for the first in its list that all know."""
        everyone = len(self.members)
        votes: dict[str, int] = {}
        for member in self.members.values():
            for name, _ in member.protocols:
                if self._support[name] == everyone:
                    votes[name] = votes.get(name, 0) + 1
                    break
        return max(votes, key=lambda name: (votes[name], -_hash_slot(name)), default=None)

    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers, so that their subscriptions can be read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def topics(self) -> frozenset[str] | None:
        """The topics that the current generation subscribes to; None where that cannot be known."""
        if self._subscribed is False:
            self._subscribed = None if self._subscriptions is None else subscribed_topics(self._subscriptions)
        return self._subscribed  # type: ignore[return-value]  # False was replaced above

    def is_subscribed(self, topic: str) -> bool:
        """Whether a topic's offsets are in use; in doubt they are, in a group of consumers."""
        topics = self.topics()
        return self.uses_consumer_protocol() if topics is None else topic in topics

    # -- volatile changes ----------------------------------------------------------------------------------------

    def move(self, state: State, now_ms: int) -> None:
        """Go on to another state."""
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state} -> {state}"
        self.state = state
        self.current_state_timestamp_ms = now_ms

    def add(self, member: Member, protocol_type: str, token: Token | None) -> None:
        """Take in a member whose JoinGroup is parked."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self._put(member)
        self.pending_joins.discard(member.member_id)
        self.park_join(member, token)

    def remove(self, member_id: str) -> Member | None:
        """Let go of a member or of a member id that was given out; another member becomes leader if need be."""
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count(member.protocols, -1)
        if member.join_token is not None:
            self.joined -= 1
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace_static(self, old: Member, member_id: str) -> Member:
        """A static member came back under another member id: it takes the old one's place, assignment and role.

        The order of the members changes, the votes do not.
        """
        assert old.group_instance_id is not None
        del self.members[old.member_id]
        self._count(old.protocols, -1)
        if old.join_token is not None:
            self.joined -= 1
        member = Member(
            self.group_id,
            member_id,
            old.group_instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocols,
            old.assignment,
        )
        self._put(member)
        if self.leader == old.member_id:
            self.leader = member_id
        if old.member_id in self.pending_syncs:
            self.pending_syncs.remove(old.member_id)
            self.pending_syncs.add(member_id)
        return member

    def update(self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int) -> None:
        """A member joins again, maybe with other protocols."""
        self._count(member.protocols, -1)
        self._count(protocols, 1)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def park_join(self, member: Member, token: Token | None) -> None:
        """Keep, or with None forget, the member's JoinGroup."""
        self.joined += (token is not None) - (member.join_token is not None)
        member.join_token = token

    def elect_joined_leader(self) -> bool:
        """See to it that the leader has joined; whether anybody has."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is not None and leader.join_token is not None:
            return True
        for member in self.members.values():
            if member.join_token is not None:
                self.leader = member.member_id
                return True
        return False

    def next_generation(self, now_ms: int) -> None:
        """All have joined: number, protocol and subscriptions of the generation that they will sync to."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol()
        self.pending_syncs = set(self.members)
        self._note_subscriptions()
        self.move(COMPLETING_REBALANCE, now_ms)

    # -- replay --------------------------------------------------------------------------------------------------

    def replay_record(self, value: GroupMetadataValue) -> None:
        """Replay of a GroupMetadata record.

        A member that is already what the record says keeps its volatile side. The record of a group's making, written
        in the turn of its first JoinGroup, finds a group whose members are joining already: it adds nothing then.
        """
        if not self.is_logged and not value.members and self.generation_id == value.generation:
            self.is_logged = True
            if self.state is EMPTY:
                self.protocol_type = value.protocol_type
                self.current_state_timestamp_ms = value.current_state_timestamp
                self._note_subscriptions()
            return
        self.is_logged = True
        self.generation_id = value.generation
        self.protocol_type = value.protocol_type
        self.protocol_name = value.protocol
        self.leader = value.leader
        self.current_state_timestamp_ms = value.current_state_timestamp
        self.state = STABLE if value.members else EMPTY
        known, self.members = self.members, {}
        self.static_members = {}
        self._support = {}
        self.joined = 0
        for record in value.members:
            self._put(self._replayed_member(record, known.get(record.member_id)))
        self._note_subscriptions()

    def _replayed_member(self, record: Any, known: Member | None) -> Member:
        rebalance_timeout_ms = record.rebalance_timeout
        member = Member(
            self.group_id,
            record.member_id,
            record.group_instance_id,
            record.client_id,
            record.client_host,
            record.session_timeout if rebalance_timeout_ms == -1 else rebalance_timeout_ms,
            record.session_timeout,
            ((self.protocol_name or "", bytes(record.subscription)),),
            bytes(record.assignment),
        )
        if known is None or known.facts(self.protocol_name) != member.facts(self.protocol_name):
            return member
        known.assignment = member.assignment
        if known.join_token is not None:
            self.joined += 1
        return known

    def replay_tombstone(self) -> None:
        """Replay of the group's tombstone."""
        self.state = DEAD

    def facts(self) -> tuple[object, ...]:
        """What the log says of a settled group."""
        return (
            self.state,
            self.protocol_type,
            self.generation_id,
            self.protocol_name,
            self.leader,
            self.current_state_timestamp_ms,
            tuple((m.facts(self.protocol_name), m.assignment) for m in self.members.values()),
            self.topics(),
        )

    # -- bookkeeping ---------------------------------------------------------------------------------------------

    def _put(self, member: Member) -> None:
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self._count(member.protocols, 1)

    def _count(self, protocols: Protocols, by: int) -> None:
        for name in {name for name, _ in protocols}:
            self._support[name] = self._support.get(name, 0) + by

    def _note_subscriptions(self) -> None:
        self._subscribed = False
        if not self.uses_consumer_protocol():
            self._subscriptions = None
        else:
            self._subscriptions = [m.metadata(self.protocol_name) for m in self.members.values()]


def _hash_slot(name: str) -> int:
    """Where a small java.util.HashMap keeps a name: an even vote goes to the first in its order, in Kafka and so here.

    Any rule would do that does not depend on the order of the members: a static member that is replaced must not turn
    an even vote over.
    """
    h = java_string_hash(name) & 0xFFFFFFFF
    return (h ^ h >> 16) & 15


def static_member(group: ClassicGroup, group_instance_id: str | None) -> Member | None:
    """The member that holds an instance id."""
    member_id = group.static_members.get(group_instance_id) if group_instance_id is not None else None
    return group.members[member_id] if member_id is not None else None
