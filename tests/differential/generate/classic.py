"""Classic consumer groups: members that join, sync, beat, commit and leave, in good order and in bad."""

from __future__ import annotations

from differential.generate import offsets as o
from differential.generate.builder import Case, Mix, data, said
from differential.plain import Plain, Values

GROUP = o.GROUP
SESSION_MS = 30_000
PROTOCOLS = (["range"], ["range", "roundrobin"], ["roundrobin", "range"], ["sticky"])


class ClassicGroup:
    """The members of one group, and requests in their names."""

    def __init__(self, case: Case, *, session_ms: int = SESSION_MS, rebalance_ms: int = 60_000) -> None:
        self.case = case
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.members = [f"m{at}" for at in range(1 + case.count(2, 4, 3, 1))]
        self.instances = {m: (f"i{at}" if case.maybe(0.35) else None) for at, m in enumerate(self.members)}
        if case.maybe(0.1) and len(self.members) > 1:
            self.instances[self.members[1]] = self.instances[self.members[0]] = "i0"
        self.kind = case.weighted((("consumer", 6), ("connect", 1)))
        common = case.rng.choice(PROTOCOLS[:3])
        self.protocols = {m: common if case.maybe(0.8) else case.rng.choice(PROTOCOLS) for m in self.members}
        self.subscriptions: dict[str, Plain] = {m: self._subscription() for m in self.members}
        self.versions = {m: case.version("JoinGroup") for m in self.members} if case.maybe(0.5) else {}
        self.client_ids = {m: case.one("differ", "differ", "c-" + m) for m in self.members}

    def _subscription(self) -> Values:
        if self.case.maybe(0.15):
            return data(b"junk")
        return {"$f": "sub", "topics": [self.case.one("&s0", "&s0", "&s1")], "v": self.case.one(0, 1, 2, 3)}

    def some(self) -> str:
        return self.case.rng.choice(self.members)

    def join(self, member: str, odd: bool = False) -> Values:
        case = self.case
        body = {
            "GroupId": GROUP,
            "SessionTimeoutMs": self.session_ms,
            "RebalanceTimeoutMs": self.rebalance_ms,
            "MemberId": said("mid:" + member, 0, ""),
            "GroupInstanceId": self.instances[member],
            "ProtocolType": self.kind,
            "Protocols": [{"Name": name, "Metadata": self.subscriptions[member]} for name in self.protocols[member]],
            "Reason": case.one(None, "why"),
        }
        if odd:
            body["MemberId"] = case.one("", "bogus", said("mid:" + self.some(), 0, ""))
            if case.maybe(0.3):
                body["SessionTimeoutMs"] = case.one(5999, 6000, 1_800_001, 0, -1)
            if case.maybe(0.2):
                body["ProtocolType"] = case.one("", "connect", "consumer")
            if case.maybe(0.2):
                body["Protocols"] = case.one(
                    [], [{"Name": "other", "Metadata": data(b"x")}], [{"Name": "", "Metadata": data(b"")}]
                )
        version = self.versions.get(member) or case.version("JoinGroup")
        return case.add("JoinGroup", version, body, member, member, id=self.client_ids[member])

    def sync(self, member: str, odd: bool = False) -> Values:
        case = self.case
        body = {
            "GroupId": GROUP,
            "GenerationId": said("gen:" + member),
            "MemberId": said("mid:" + member, 0, ""),
            "GroupInstanceId": self.instances[member],
            "ProtocolType": self.kind,
            "ProtocolName": said("proto:" + member, 0, None),
            "Assignments": {"$f": "assign", "m": member, "all": self.members},
        }
        if odd:
            choices: dict[str, Plain] = {
                "GenerationId": said("gen:" + member, case.one(-1, 1)),
                "MemberId": case.one("", "bogus", said("mid:" + self.some(), 0, "")),
                "GroupInstanceId": case.one("i0", "i9", None),
                "ProtocolType": case.one(None, "connect", "consumer", ""),
                "ProtocolName": case.one(None, "range", "roundrobin", "zz"),
                "Assignments": {"$f": "assign", "m": member, "all": self.members, "not": 1},
            }
            name = case.rng.choice(list(choices))
            body[name] = choices[name]
        return case.add("SyncGroup", case.version("SyncGroup"), body, member, member)

    def bring_up(self) -> None:
        """All members join and sync, as clients do."""
        for member in self.members:
            if not self.instances[member] and self.versions.get(member, 9) >= 4:
                self.join(member)  # the answer gives the member id that the next one needs
        for member in self.members:
            self.join(member)
        if self.case.maybe(0.6):
            for member in self.members:
                self.join(member)
        for member in self.case.rng.sample(self.members, len(self.members)):
            self.sync(member)

    def heartbeat(self, member: str, is_good: bool = False) -> Values:
        case = self.case
        body = {
            "GroupId": GROUP,
            "GenerationId": said("gen:" + member, 0 if is_good else case.weighted(((0, 8), (1, 0.7), (-1, 0.7)))),
            "MemberId": said("mid:" + member, 0, "") if is_good or case.maybe(0.93) else case.one("", "bogus"),
            "GroupInstanceId": self.instances[member] if is_good or case.maybe(0.92) else case.one("i0", "i9", None),
        }
        return case.add("Heartbeat", case.version("Heartbeat"), body, member)

    def leave(self, member: str) -> Values:
        case = self.case
        who = said("mid:" + member, 0, "")
        instance = self.instances[member] if case.maybe(0.85) else case.one("i0", "i9", None)
        rows = [
            {"MemberId": case.weighted(((who, 6), ("", 2), ("bogus", 1))), "GroupInstanceId": instance, "Reason": "r"}
        ]
        if case.maybe(0.2):
            rows.append({"MemberId": said("mid:" + self.some(), 0, ""), "GroupInstanceId": self.instances[self.some()]})
        body = {"GroupId": GROUP, "MemberId": who, "Members": rows}
        return case.add("LeaveGroup", case.version("LeaveGroup"), body, member)

    def _credentials(self, member: str) -> tuple[Plain, Plain, str | None]:
        case = self.case
        generation = case.weighted(((said("gen:" + member), 7), (-1, 2), (said("gen:" + member, 1), 1)))
        who = said("mid:" + member, 0, "") if case.maybe(0.85) else case.one("", "bogus")
        return generation, who, self.instances[member] if case.maybe(0.9) else case.one("i0", "i9", None)

    def commit(self, member: str) -> Values:
        return o.offset_commit(self.case, GROUP, *self._credentials(member), link="o" + member)

    def transactional_commit(self, member: str) -> Values:
        if not self.case.has("InitProducerId"):
            o.init_transactional(self.case, "%x0", "p0", 4)
        step = o.transactional_commit(self.case, "%x0", "p0", GROUP, *self._credentials(member))
        return o.end_transaction(self.case, "%x0", "p0") if self.case.maybe(0.5) else step

    def fetch(self, member: str) -> Values:
        who = self.case.weighted(((None, 6), (said("mid:" + member, 0, ""), 2), ("", 0.5)))
        return o.offset_fetch(self.case, [GROUP], who, self.case.weighted(((-1, 6), (said("gen:" + member), 2))))


def consumer_heartbeat_of_a_stranger(case: Case, group: str) -> Values:
    """A member of the new protocol where the group may be of another kind."""
    body = {
        "GroupId": group,
        "MemberId": "%z0",
        "MemberEpoch": 0,
        "RebalanceTimeoutMs": 60_000,
        "ServerAssignor": "range",
        "SubscribedTopicNames": ["&s0"],
        "TopicPartitions": [],
    }
    return case.add("ConsumerGroupHeartbeat", 1, body, label="z0")


def classic(case: Case) -> None:
    """One group of one to four members."""
    group = ClassicGroup(case, rebalance_ms=case.one(60_000, 60_000, 60_000, 400))
    is_slow = group.rebalance_ms == 400
    if case.maybe(0.7):
        group.bring_up()
    mix = Mix(case)
    mix.action(9, lambda: group.join(group.some()))
    mix.action(8, lambda: group.sync(group.some()))
    mix.action(7, lambda: group.heartbeat(group.some()))
    mix.action(3, lambda: group.leave(group.some()))
    mix.action(5, lambda: group.commit(group.some()))
    mix.action(1.5, lambda: group.transactional_commit(group.some()))
    mix.action(2, lambda: group.fetch(group.some()))
    mix.action(6, lambda: o.group_reads(case, [GROUP]))
    mix.action(1, lambda: o.offset_delete(case, GROUP))
    mix.action(0.6, lambda: o.delete_groups(case, [GROUP]))
    mix.action(1.5, group.bring_up)
    mix.action(1.5 if is_slow else 0, lambda: case.pass_time(750))
    mix.action(0.6, lambda: consumer_heartbeat_of_a_stranger(case, GROUP))
    mix.action(3, lambda: group.join(group.some(), True))
    mix.action(3, lambda: group.sync(group.some(), True))
    mix.run(case.rng.randint(8, 30))
