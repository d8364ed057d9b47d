"""Plays many cases on one pair of brokers: each case has names of its own, and all share a few lasting topics."""

from __future__ import annotations

import time
from pathlib import Path
from string import ascii_lowercase

from differential.allow import AllowList
from differential.brokers import Peer
from differential.generate.profiles import place_partitions
from differential.links import LinkError
from differential.plain import Values
from differential.play import Outcome, Play
from differential.route import Router
from differential.settle import Settler
from differential.side import Side

HERE = Path(__file__).parent
ALLOW = HERE / "allow.json"  # departures on purpose, and failures of Kafka's own
OPEN = HERE / "open.json"  # faults of momus that are known and not mended
LASTING = {"s0": 3, "s1": 1, "s2": 6}  # topics that cases may write to and never delete: name -> partitions
WARM_LIMIT_S = 60.0
COORDINATORS = 12  # groups and transactional ids asked for, so that every partition of the coordinators' topics is met
READY = (0, 69, 105)  # served: there is no such group or transactional id

IN_ORDER = (("m0", "m1", "m2", "m3"), ("q0", "q1"), ("k0", "k1"))  # members of groups
BUCKETS = 16  # of a Java HashMap with up to twelve entries


def java_bucket(text: str) -> int:
    """Where a Java HashMap of few entries keeps a text."""
    number = 0
    for letter in text:
        number = (number * 31 + ord(letter)) & 0xFFFFFFFF
    return (number ^ number >> 16) & (BUCKETS - 1)


def in_order(begin: str) -> str:
    """A prefix with which Kafka's hash maps hold the members in the order of their names, in which they join."""
    for letter in ascii_lowercase:
        prefix = f"{begin}{letter}-"
        places = [[java_bucket(prefix + member) for member in members] for members in IN_ORDER]
        if all(row == sorted(row) for row in places):
            return prefix
    return begin + "-"


class Pair:
    """Both brokers, or one of them, as one process of the run sees them."""

    def __init__(self, peers: list[Peer], allow: AllowList, number: int = 0, *, shares: bool = False) -> None:
        """`peers`: Kafka and momus, in this order. `number`: no other pair on these
        brokers has it, so that names differ. `shares`: its cases are of share groups."""
        self.peers = peers
        self._shares = shares
        self.allow = allow
        self._number = number
        self._cases = 0
        self._routers = [Router(peer) for peer in self.peers]
        self._lasting = f"w{number}-"
        self._ids: list[dict[bytes, str]] = [{} for _ in peers]
        self.warm()
        self._make_lasting_topics()

    def warm(self) -> None:
        """Until every coordinator serves."""
        end = time.monotonic() + WARM_LIMIT_S
        for router in self._routers:
            for each in range(COORDINATORS):
                for kind, api in ((0, "DescribeGroups"), (1, "DescribeTransactions")):
                    while not self._coordinates(router, kind, api, f"warm{each}") and time.monotonic() < end:
                        time.sleep(0.1)
            # Kafka makes the topic of share groups at its first use, which takes longer than a case waits.
            body: Values = {"KeyType": 2, "CoordinatorKeys": ["warm:AAAAAAAAAAAAAAAAAAAAAA:0"]}
            while self._shares and time.monotonic() < end:
                if not router.ask("FindCoordinator", 6, body)["Coordinators"][0]["ErrorCode"]:
                    break
                time.sleep(0.1)

    def _coordinates(self, router: Router, kind: int, api: str, name: str) -> bool:
        found = router.ask("FindCoordinator", 4, {"KeyType": kind, "CoordinatorKeys": [name]})["Coordinators"][0]
        if found["ErrorCode"]:
            return False
        names, version, rows = ("Groups", 5, "Groups") if kind == 0 else ("TransactionalIds", 0, "TransactionStates")
        answer = router.ask(api, version, {names: [name]}, max(0, found["NodeId"] - 1))
        return answer[rows][0]["ErrorCode"] in READY

    def _make_lasting_topics(self) -> None:
        sides = self._sides("none-")
        rows = [
            {"Name": self._lasting + name, "NumPartitions": count, "ReplicationFactor": 1}
            for name, count in LASTING.items()
        ]
        if self.peers[0].nodes > 1:
            place_partitions(rows, self.peers[0].nodes)
        settler = Settler(sides)
        nobody = {"TransactionalId": None, "TransactionTimeoutMs": 1000, "ProducerId": -1, "ProducerEpoch": -1}
        for at, side in enumerate(sides):
            side.ask("InitProducerId", 4, nobody)  # takes id 0, which answers hold where they mean none
            side.ask("CreateTopics", 7, {"Topics": rows, "TimeoutMs": 9000})
            for name in LASTING:
                if not settler.topic_up(side, self._lasting + name, WARM_LIMIT_S):
                    raise LinkError("the lasting topics did not come up")
            self._ids[at] = dict(side.symbols.topic_ids)
            side.close()

    def _sides(self, prefix: str) -> list[Side]:
        return [
            Side(peer, router, prefix, self._lasting, ids)
            for peer, router, ids in zip(self.peers, self._routers, self._ids, strict=True)
        ]

    def begin(self, steps: list[Values], slow_s: float = 0.0, prefix: str = "") -> Play:
        """A case with names that no other has, or with the names of a recorded one."""
        self._cases += 1
        prefix = prefix or in_order(f"c{self._number}n{self._cases:04}")
        return Play(self._sides(prefix), steps, self.allow, slow_s)

    def play(self, steps: list[Values], slow_s: float = 0.0) -> Outcome:
        """One case from its first step to its last. Errors: LinkError, OSError: a broker does not serve."""
        return self.play_all([steps], slow_s)[0]

    def play_all(self, cases: list[list[Values]], slow_s: float = 0.0) -> list[Outcome]:
        """Some cases that meet at their restarts: one restart serves all of them."""
        plays = [self.begin(steps, slow_s) for steps in cases]
        left = plays
        try:
            while left:
                left = [play for play in left if play.run()]
                if left:
                    self.restart()
                    for play in left:
                        play.restarted()
        finally:
            for play in plays:
                for side in play.sides:
                    side.close()
                play.settler.clean()
        return [play.outcome for play in plays]

    def restart(self) -> None:
        """Kill both brokers and wait until they serve again."""
        for peer, router in zip(self.peers, self._routers, strict=True):
            peer.restart()
            router.forget()
        self.warm()

    def forget(self) -> None:
        """Make new connections: something is wrong with the old ones."""
        for router in self._routers:
            router.forget()
