"""Consumer groups of KIP-848: heartbeats with epochs and partitions, by names or expressions, classic members among
them."""

from __future__ import annotations

from collections.abc import Sequence

from differential.generate import offsets as o
from differential.generate.builder import Case, Mix, said, topic_id
from differential.plain import Plain, Values

GROUP = o.GROUP
EXPRESSIONS = ("&s.*", "&s[01]", "nothing", "[", "")


class ConsumerGroup:
    """The members of one group, and heartbeats in their names."""

    def __init__(self, case: Case, assignors: Sequence[str | None] = ("range", None, "uniform"), most: int = 3) -> None:
        self.case = case
        self.members = [f"m{at}" for at in range(1 + case.count(*(3, 4, 3, 2)[:most]))]
        several = len(self.members) > 1
        self.instances = {m: (f"i{at}" if case.maybe(0.3) else None) for at, m in enumerate(self.members)}
        if several and case.maybe(0.2):
            self.instances[self.members[1]] = self.instances[self.members[0]] = "i0"
        self.assignor = case.rng.choice(list(assignors))
        self.old = {m: case.maybe(0.1) for m in self.members}  # version 0, in which the broker makes the member id
        self.choices = [["&s0"], ["&s1"], ["&s0", "&s2"], ["&s0", "&s1"], ["%nope"]] + ([] if several else [[]])
        self.common = case.rng.choice(self.choices[:4]) if case.maybe(0.5) else None
        self.by_expression = case.maybe(0.2) and (not several or case.maybe(0.3))

    def some(self) -> str:
        return self.case.rng.choice(self.members)

    def topics(self) -> list[str]:
        return self.common or self.case.rng.choice(self.choices)

    def member_id(self, member: str) -> Plain:
        return said("mid:" + member, 0, "") if self.old[member] else f"%{member}"

    def owned(self, member: str) -> Values:
        return said("own:" + member, 0, [])

    def beat(
        self,
        member: str,
        epoch: Plain,
        owned: Plain = None,
        names: list[str] | None = None,
        expression: str | None = None,
        timeout_ms: int = -1,
        **more: Plain,
    ) -> Values:
        speaks = names is not None or expression
        body = {
            "GroupId": GROUP,
            "MemberId": self.member_id(member),
            "MemberEpoch": epoch,
            "InstanceId": self.instances[member],
            "RackId": None,
            "RebalanceTimeoutMs": timeout_ms,
            "SubscribedTopicNames": names,
            "SubscribedTopicRegex": expression,
            "ServerAssignor": self.assignor if speaks else None,
            "TopicPartitions": owned,
            **more,
        }
        return self.case.add("ConsumerGroupHeartbeat", 0 if self.old[member] else 1, body, member, member)

    def join(self, member: str, **more: Plain) -> Values:
        if self.by_expression and not self.old[member] and self.case.maybe(0.7):
            return self.beat(
                member, 0, [], [] if self.case.maybe(0.5) else None, self.case.rng.choice(EXPRESSIONS), 60_000, **more
            )
        return self.beat(member, 0, [], self.topics(), None, 60_000, **more)

    def settle(self, rounds: int = 2) -> None:
        """Heartbeats until everybody has given back and taken what is to be."""
        for _ in range(rounds):
            for member in self.members:
                self.beat(member, said("ep:" + member), self.owned(member))

    def odd(self, member: str) -> Values:
        case, epoch = self.case, said("ep:" + member)
        some_parts = [{"TopicId": topic_id("&s0"), "Partitions": case.one([0, 1, 2], [0], [5], [-1], [])}]
        return case.act(
            lambda: self.beat(member, epoch, ServerAssignor=case.one("sticky", "uniform", "")),
            lambda: self.beat(member, -3),
            lambda: self.beat(member, 0, None, ["&s0"], None, 60_000),
            lambda: self.beat(member, 0, [], ["&s0"], None, -1),
            lambda: self.beat(member, 0, [], None, None, 60_000),
            lambda: self.beat(member, 0, [], [], "", 60_000),
            lambda: self.beat(member, 0, [], ["&s0", "&s0"], None, 60_000),
            lambda: self.beat(member, epoch, RackId=case.one("r1", "")),
            lambda: self.beat(member, epoch, InstanceId=case.one("i0", "i9", "", None)),
            lambda: self.beat(member, epoch, MemberId=case.one("", "bogus")),
            lambda: self.beat(member, epoch, GroupId=case.one("", "%g9")),
            lambda: self.beat(member, 0, [{"TopicId": topic_id("&s0"), "Partitions": [0]}], ["&s0"], None, 60_000),
            lambda: self.beat(member, epoch, some_parts),
        )

    def _epoch(self, member: str) -> Values:
        return said("ep:" + member, self.case.weighted(((0, 6), (-1, 3), (1, 0.6), (-2, 1))))

    def commit(self, member: str) -> Values:
        case = self.case
        who = self.member_id(member) if case.maybe(0.9) else case.one("", "bogus")
        instance = self.instances[member] if case.maybe(0.8) else case.one(None, "i9")
        version = case.version("OffsetCommit", 8) if case.maybe(0.8) else None
        names = ("&s0", "&s0", "&s2", "&s1", "%nope")
        return o.offset_commit(case, GROUP, self._epoch(member), who, instance, "o" + member, version, names)

    def transactional_commit(self, member: str) -> Values:
        case = self.case
        if not case.has("InitProducerId"):
            o.init_transactional(case, "%x0", "p0", 4)
        who = self.member_id(member) if case.maybe(0.9) else ""
        instance = self.instances[member] if case.maybe(0.8) else None
        names = ("&s0", "&s0", "&s2", "&s1")
        step = o.transactional_commit(
            case, "%x0", "p0", GROUP, self._epoch(member), who, instance, case.one(3, 4, 5), names
        )
        return o.end_transaction(case, "%x0", "p0") if case.maybe(0.4) else step

    def fetch(self, member: str) -> Values:
        case = self.case
        version = case.version("OffsetFetch", 8)
        if case.maybe(0.3):
            epoch = said("ep:" + member, case.weighted(((0, 4), (1, 1), (-1, 2))))
            return o.offset_fetch(case, [GROUP], self.member_id(member), epoch, version=version)
        return o.offset_fetch(case, [GROUP], case.weighted(((None, 6), ("", 0.6), ("bogus", 0.5))), version=version)


class ClassicMembers:
    """Members of the classic protocol in a consumer group, which migrates for them."""

    def __init__(self, case: Case, always_static: bool) -> None:
        self.case = case
        self.always_static = always_static

    def some(self) -> str:
        return self.case.one("k0", "k1")

    def join(self) -> Values:
        case, member = self.case, self.some()
        instance = member if self.always_static or case.maybe(0.6) else None
        metadata = {"$f": "sub", "topics": ["&s0"], "v": case.one(0, 1, 3)}
        body = {
            "GroupId": GROUP,
            "SessionTimeoutMs": 30_000,
            "RebalanceTimeoutMs": 60_000,
            "MemberId": said("mid:" + member, 0, ""),
            "GroupInstanceId": instance,
            "ProtocolType": case.weighted((("consumer", 9), ("connect", 0.4))),
            "Protocols": [{"Name": "range", "Metadata": metadata}],
        }
        return case.add("JoinGroup", case.version("JoinGroup", 5), body, member, member)

    def sync(self) -> Values:
        case, member = self.case, self.some()
        parts = {member: [["&s0", [0, 1, 2]]]}
        body = {
            **self._who(member),
            "ProtocolType": "consumer",
            "ProtocolName": "range",
            "Assignments": {"$f": "assign", "m": member, "all": [member], "parts": parts},
        }
        return case.add("SyncGroup", case.version("SyncGroup"), body, member, member)

    def _who(self, member: str) -> Values:
        generation = said("gen:" + member, self.case.weighted(((0, 8), (1, 0.5))))
        return {"GroupId": GROUP, "GenerationId": generation, "MemberId": said("mid:" + member, 0, "")}

    def beat(self) -> Values:
        member = self.some()
        return self.case.add("Heartbeat", self.case.version("Heartbeat"), self._who(member), member)

    def leave(self) -> Values:
        member = self.some()
        who = said("mid:" + member, 0, "")
        body = {"GroupId": GROUP, "MemberId": who, "Members": [{"MemberId": who}]}
        return self.case.add("LeaveGroup", self.case.version("LeaveGroup"), body, member)

    def commit(self) -> Values:
        member = self.some()
        who = said("mid:" + member, 0, "")
        return o.offset_commit(self.case, GROUP, said("gen:" + member), who, None, member, names=["&s0"])


def consumer(case: Case, group: ConsumerGroup | None = None, classic_share: float = 0.25) -> None:
    """One group of one to three members, sometimes with classic ones, sometimes on a topic that grows or goes."""
    group = group or ConsumerGroup(case)
    is_mixed = case.maybe(classic_share)
    is_fresh = case.maybe(0.25)
    if is_fresh:
        case.topics({"%t0": 3})
        group.choices += [["%t0"], ["%t0", "&s0"]]
    for member in group.members:
        if case.maybe(0.8):
            group.join(member)
    if case.maybe(0.5):
        group.settle()
    mix = Mix(case, 0.05)
    _beats(case, group, mix)
    mix.action(7, lambda: group.commit(group.some()))
    mix.action(2, lambda: group.transactional_commit(group.some()))
    mix.action(4, lambda: group.fetch(group.some()))
    mix.action(6, lambda: o.group_reads(case, [GROUP]))
    mix.action(0.5, lambda: o.delete_groups(case, [GROUP]))
    mix.action(1, lambda: o.offset_delete(case, GROUP))
    guests = ClassicMembers(case, len(group.members) > 1)
    mix.action(3 if is_mixed else 0.4, guests.join)
    mix.action(3 if is_mixed else 0.2, guests.sync)
    mix.action(2 if is_mixed else 0.2, guests.beat)
    mix.action(1 if is_mixed else 0, guests.commit)
    mix.action(1 if is_mixed else 0, guests.leave)
    grown = {"Topics": [{"Name": "%t0", "Count": case.one(4, 5, 6)}], "TimeoutMs": 8000}
    gone = {"Topics": [{"Name": "%t0"}], "TimeoutMs": 8000}
    mix.action(0.6 if is_fresh else 0, lambda: case.add("CreatePartitions", 3, dict(grown), settle=60) and None)
    mix.action(0.3 if is_fresh else 0, lambda: case.add("DeleteTopics", 6, dict(gone), settle=60) and None)
    mix.run(case.rng.randint(10, 36))


def _beats(case: Case, group: ConsumerGroup, mix: Mix) -> None:
    def of(function: str) -> Values:
        member = group.some()
        epoch = said("ep:" + member)
        owned = group.owned(member)
        if function == "beat":
            return group.beat(member, epoch)
        if function == "confirm":
            return group.beat(member, epoch, owned)
        if function == "full":
            return group.beat(member, epoch, owned, group.topics(), None, 60_000)
        if function == "stale":
            return group.beat(member, said("ep:" + member, -1), case.one(None, [], owned))
        if function == "ahead":
            return group.beat(member, said("ep:" + member, case.one(1, 5)), case.one(None, owned))
        if function == "wish":
            return group.beat(
                member, epoch, case.one(None, owned), case.rng.choice(group.choices), None, case.one(-1, 60_000)
            )
        expression = case.rng.choice(EXPRESSIONS)
        return group.beat(member, epoch, case.one(None, owned), None, expression, case.one(-1, 60_000))

    weights = {"beat": 9, "confirm": 9, "full": 3, "stale": 2, "ahead": 1, "wish": 3}
    mix.action(sum(weights.values()), lambda: of(case.do(weights)))
    mix.action(2 if group.by_expression else 0.2, lambda: of("expression"))
    mix.action(4, lambda: group.join(group.some()))
    mix.action(2, lambda: group.beat(group.some(), -1))
    mix.action(2, lambda: group.beat(group.some(), -2))
    mix.action(3, lambda: group.odd(group.some()))
    mix.action(2, lambda: group.settle(case.one(1, 2)))
