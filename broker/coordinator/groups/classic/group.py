"""A classic group: its members, its state (states.py), and the replay of its GroupMetadata records.

What is logged and what is not
------------------------------
A GroupMetadata record describes a *settled* group: Empty, without members, or Stable, with the subscription and the
assignment of every member. Only the replay methods move a group into these states, when serving and when loading alike.
A settled group is exactly what its last record says; tests compare the two.

A group between two settled states is volatile, as in Kafka: no record says anything of it. It is changed by the methods
named rebalance. The slots in VOLATILE are never logged. After a crash a group is what its last record says, and the
next heartbeats of its clients start a rebalance. A failed append discards the shard with all that is volatile, and
loads it again; a volatile change is never taken back one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from broker.base.facts import facts
from broker.base.placement import hash_slot
from broker.coordinator.groups.classic.member import Member, Protocols
from broker.coordinator.groups.classic.states import COMPLETING_REBALANCE, DEAD, EMPTY, STABLE, TRANSITIONS, State
from broker.coordinator.groups.classic.subscription import subscribed_topics

if TYPE_CHECKING:
    from broker.turn.decision import Token
    from protocol.messages.coordinator_records import GroupMetadataValue

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


class ClassicGroup:
    """One group of the classic protocol."""

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

    VOLATILE: ClassVar[Mapping[str, str]] = {
        "_subscribed": "a cache of _subscriptions; facts() compares what it holds",
        "_support": "counts volatile protocols; facts() compares it with a new count",
        "initial_delay_ms": "of a running rebalance",
        "initial_remaining_ms": "of a running rebalance",
        "is_initial_rebalance": "of a running rebalance",
        "joined": "counts parked requests; facts() compares it with a new count",
        "member_added": "of a running rebalance",
        "pending_joins": "member ids that were given out; clients ask for new ones after a restart",
        "pending_syncs": "members that have not asked for an assignment that is logged already",
    }

    group_type: Final = "classic"

    def __init__(self, group_id: str, now_ms: int = -1, generation_id: int = 0) -> None:
        self.group_id = group_id
        self.state = EMPTY
        self.generation_id = generation_id
        self.protocol_type = ""  # "" until a member names one
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.current_state_timestamp_ms = now_ms
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.pending_joins: set[str] = set()
        self.pending_syncs: set[str] = set()
        self.joined = 0  # members with a parked JoinGroup
        self.is_logged = False
        self.is_initial_rebalance = False  # it began when the group was Empty: a delay ends it, not the members
        self.member_added = False
        self.initial_delay_ms = 0
        self.initial_remaining_ms = 0
        self.join_timer = ("join", group_id)
        self.sync_timer = ("sync", group_id)
        self._support: dict[str, int] = {}  # protocol -> how often members name it
        self._subscriptions: list[bytes] | None = []  # of the current generation
        self._subscribed: frozenset[str] | bool | None = False  # False: not read yet

    # -- queries -------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return self.state is EMPTY

    def has_all_joined(self) -> bool:
        """Whether the JoinGroups of all members are parked, and every member id that was given out is used."""
        return self.joined == len(self.members) and not self.pending_joins

    def rebalance_timeout_ms(self) -> int:
        """How long a rebalance may take: the longest rebalance timeout of a member."""
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
        """The protocol with most votes; a member votes for the first in its list that all members support.

        As in Kafka, a protocol that a member names twice counts twice, and is out of the vote. Where none is left,
        Kafka fails; here the vote is then about all that every member names.
        """
        members = self.members.values()
        known = set.intersection(*({name for name, _ in member.protocols} for member in members)) if members else set()
        common = {name for name in known if self._support[name] == len(members)} or known
        votes = Counter(next(name for name, _ in member.protocols if name in common) for member in members if common)
        return max(votes, key=lambda name: (votes[name], -hash_slot(name)), default=None)

    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers, whose subscriptions the broker can read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def topics(self) -> frozenset[str] | None:
        """The topics that the current generation subscribes to; None if they cannot be read."""
        if self._subscribed is False:
            self._subscribed = None if self._subscriptions is None else subscribed_topics(self._subscriptions)
        return self._subscribed  # type: ignore[return-value]  # False was replaced above

    def is_subscribed(self, topic: str) -> bool:
        """Whether a topic's offsets are in use. Those of consumers with unreadable subscriptions always are."""
        topics = self.topics()
        return self.uses_consumer_protocol() if topics is None else topic in topics

    # -- changes that no record holds ------------------------------------------------------------------------------

    def rebalance_to(self, state: State, now_ms: int) -> None:
        """Move to another state, not a settled one."""
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state} -> {state}"
        self.state = state
        self.current_state_timestamp_ms = now_ms

    def rebalance_add(self, member: Member, protocol_type: str, token: Token | None) -> None:
        """Add a member whose JoinGroup is parked."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self._replay_put(member)
        self.pending_joins.discard(member.member_id)
        self.park_join(member, token)

    def rebalance_remove(self, member_id: str) -> Member | None:
        """Remove a member, or a member id that was given out. If it was the leader, another member becomes leader."""
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._replay_count(member.protocols, -1)
        if member.join_token is not None:
            self.joined -= 1
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def rebalance_replace(self, old: Member, member_id: str) -> Member:
        """Replace a static member that came back with another member id; the new one has its assignment and role.

        The order of the members changes, the votes do not.
        """
        assert old.group_instance_id is not None
        del self.members[old.member_id]
        self._replay_count(old.protocols, -1)
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
        self._replay_put(member)
        if self.leader == old.member_id:
            self.leader = member_id
        if old.member_id in self.pending_syncs:
            self.pending_syncs.remove(old.member_id)
            self.pending_syncs.add(member_id)
        return member

    def rebalance_update(
        self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        """Take over what a member sends when it joins again."""
        self._replay_count(member.protocols, -1)
        self._replay_count(protocols, 1)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def park_join(self, member: Member, token: Token | None) -> None:
        """Keep the token of the member's parked JoinGroup; None forgets it."""
        self.joined += (token is not None) - (member.join_token is not None)
        member.join_token = token

    def rebalance_elect_leader(self) -> bool:
        """Make a member that has joined the leader, the current one if possible; whether any member has joined."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is not None and leader.join_token is not None:
            return True
        for member in self.members.values():
            if member.join_token is not None:
                self.leader = member.member_id
                return True
        return False

    def rebalance_next_generation(self, now_ms: int) -> None:
        """All members have joined: start the next generation, with its protocol and its subscriptions."""
        self.generation_id += 1
        self.rebalance_select_protocol()
        self.pending_syncs = set(self.members)
        self._replay_subscriptions()
        self.rebalance_to(COMPLETING_REBALANCE, now_ms)

    def rebalance_select_protocol(self) -> None:
        """Use the protocol that the members vote for."""
        self.protocol_name = self.select_protocol()

    def rebalance_clear_assignments(self) -> None:
        """A rebalance begins before the last one brought an assignment: the old ones end."""
        for member in self.members.values():
            member.assignment = b""

    # -- replay --------------------------------------------------------------------------------------------------

    def replay_record(self, value: GroupMetadataValue) -> None:
        """Replay a GroupMetadata record.

        A member that is already what the record says keeps its volatile state. A group's first record is written in the
        turn of its first JoinGroup, and finds a group whose members are joining already: it changes nothing then.
        """
        if not self.is_logged and not value.members and self.generation_id == value.generation:
            self.is_logged = True
            if self.state is EMPTY:
                self.protocol_type = value.protocol_type
                self.current_state_timestamp_ms = value.current_state_timestamp
                self._replay_subscriptions()
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
            self._replay_put(self._replay_member(record, known.get(record.member_id)))
        self._replay_subscriptions()

    def _replay_member(self, record: Any, known: Member | None) -> Member:
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
        if known is None or known.logged(self.protocol_name) != member.logged(self.protocol_name):
            return member
        known.assignment = member.assignment
        if known.join_token is not None:
            self.joined += 1
        return known

    def replay_tombstone(self) -> None:
        """Replay the group's tombstone."""
        self.state = DEAD

    def facts(self) -> dict[str, object]:
        """All that replaying the log must reproduce of a settled group, and whether its volatile counts are right."""
        members = self.members.values()
        return {
            **facts(self),
            "order": tuple(self.members),
            "metadata": [m.metadata(self.protocol_name) for m in members],
            "topics": self.topics(),
            "counts support": {name: count for name, count in self._support.items() if count}
            == Counter(name for m in members for name, _ in m.protocols),
            "counts joined": self.joined == sum(m.join_token is not None for m in members),
        }

    # -- used by both ----------------------------------------------------------------------------------------------

    def _replay_put(self, member: Member) -> None:
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self._replay_count(member.protocols, 1)

    def _replay_count(self, protocols: Protocols, by: int) -> None:
        for name, _ in protocols:
            self._support[name] = self._support.get(name, 0) + by

    def _replay_subscriptions(self) -> None:
        self._subscribed = False
        if not self.uses_consumer_protocol():
            self._subscriptions = None
        else:
            self._subscriptions = [m.metadata(self.protocol_name) for m in self.members.values()]


def static_member(group: ClassicGroup, group_instance_id: str | None) -> Member | None:
    """The member that has an instance id."""
    member_id = group.static_members.get(group_instance_id) if group_instance_id is not None else None
    return group.members[member_id] if member_id is not None else None
