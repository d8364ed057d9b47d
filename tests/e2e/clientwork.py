"""The work that every client is put to: records to carry, a group to play, kills to live through.

The clients differ in how one polls, sends and commits, so each test module hands that in; what must come out
is the same for all and stands here.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from momus import Broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LIMIT_S = 120
BIG_VALUE = bytes(range(256)) * 3600  # 921,600 bytes, under Kafka's default limit of 1,048,588

# key, value, headers
RECORDS: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (b"plain", b"value", []),
    (None, b"no key", []),
    (b"tombstone", None, []),
    (b"", b"", []),
    (bytes(range(256)), bytes(reversed(range(256))), []),
    ("schlüssel".encode(), "größe €".encode(), [("überschrift", "größe".encode())]),
    (b"headers", b"many", [("twice", b"1"), ("twice", b"2"), ("empty", b""), ("null", None)]),
    (b"compressible", b"momus " * 4000, [("length", b"24000")]),
]


def until(holds: Callable[[], object], why: str, limit_s: float = LIMIT_S) -> None:
    """Wait until `holds()` is true; clients decide for themselves when they act."""
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, f"waited {limit_s} s in vain: {why}"
        time.sleep(0.02)


def seen_by(consumer: Any, topic: str) -> None:
    """See to it that a kafka-python subscriber knows its topic before it joins.

    A leader that learns of the topic's partitions after its first assignment joins anew, and when a poll's time is
    up in the middle of that, kafka-python 3.0.12 forgets the join: it is silent until its session is over.
    """
    until(lambda: topic in consumer.topics(), "the topic is seen")


class Member(threading.Thread):
    """One consumer of a group in a thread of its own; a subclass polls, and says what it got."""

    # Whether the client may hand out a record again that a partition's former owner has committed
    repeats = False

    def __init__(self, **settings: Any) -> None:
        super().__init__(daemon=True)
        self.settings = settings
        self.assigned: frozenset[int] = frozenset()
        self.received: list[bytes] = []
        self.failure: BaseException | None = None
        self.stopping = threading.Event()

    def consume(self) -> None:
        """Poll until `stopping`; keep `assigned` and `received` true; leave the group."""
        raise NotImplementedError

    def run(self) -> None:
        try:
            self.consume()
        except BaseException as failure:
            self.failure = failure
            self.assigned = frozenset()

    def check(self) -> None:
        """Raise what went wrong in the member's thread."""
        if self.failure is not None:
            raise self.failure

    def leave(self) -> None:
        self.stopping.set()
        self.join(LIMIT_S)
        assert not self.is_alive(), "the member does not end"
        self.check()


def share_evenly(members: list[Member], partitions: int) -> bool:
    """Whether the members own every partition once, and none more than its share."""
    for member in members:
        member.check()
    owned = Counter(partition for member in members for partition in member.assigned)
    fair = -(-partitions // len(members))
    return owned == Counter(range(partitions)) and all(0 < len(member.assigned) <= fair for member in members)


def play_group(
    make_member: Callable[[], Member],
    send: Callable[[int, list[bytes]], object],
    committed: Callable[[], Mapping[int, int]],
    partitions: int = 6,
    each: int = 5,
) -> None:
    """Three members share a topic, one leaves, another joins; each record reaches the group once.

    Members commit what they received before they give a partition up, so nothing may come twice either, unless their
    client is known to repeat a record by itself.
    """
    members = [make_member() for _ in range(3)]
    everyone = list(members)
    sent: list[bytes] = []

    def received() -> Counter[bytes]:
        for member in members:
            member.check()
        return Counter(value for member in everyone for value in member.received)

    def exchange(stage: str) -> None:
        for partition in range(partitions):
            values = [f"{stage}-{partition}-{number}".encode() for number in range(each)]
            send(partition, values)
            sent.extend(values)
        until(lambda: not Counter(sent) - received(), f"records of {stage}")
        again = received() - Counter(sent)
        assert not again or (everyone[0].repeats and set(again) <= set(sent)), again

    try:
        for member in members:
            member.start()
        until(lambda: share_evenly(members, partitions), "three members share the topic")
        exchange("three")
        members.pop(0).leave()
        until(lambda: share_evenly(members, partitions), "two members share the topic")
        exchange("two")
        members.append(make_member())
        everyone.append(members[-1])
        members[-1].start()
        until(lambda: share_evenly(members, partitions), "the newcomer gets its share")
        exchange("newcomer")
    finally:
        for member in members:
            member.stopping.set()
    for member in members:
        member.leave()
    assert committed() == dict.fromkeys(range(partitions), 3 * each)


class Ledger:
    """What a committing thread sent, and what of it was acknowledged: partition -> offset."""

    def __init__(self) -> None:
        self.sent: dict[int, int] = {}
        self.acknowledged: dict[int, int] = {}
        self.count = 0


PAIRS = 10
LEDGER_PARTITIONS = 2 * PAIRS


def commit_through_kills(
    broker: Broker,
    committer: Callable[[], AbstractContextManager[Callable[[dict[int, int]], object]]],
    committed: Callable[[], Mapping[int, int]],
    rounds: int,
) -> None:
    """Kill -9 the broker in the middle of commits: none acknowledged is lost, none invented, none torn.

    Commit n goes to partitions n % 10 and n % 10 + 10 with offset n. Ten pairs, because a client that
    repeats its last commit after the restart would hide that commit's loss, but not that of those before.
    """
    ledger = Ledger()
    for _ in range(rounds):
        stopping = threading.Event()
        thread = threading.Thread(target=_commit, args=(ledger, committer, stopping), daemon=True)
        before = ledger.count
        thread.start()
        until(lambda goal=before + 4 * PAIRS: ledger.count >= goal, "commits are acknowledged")
        broker.kill()
        lower = dict(ledger.acknowledged)
        broker.start()
        stopping.set()
        thread.join(LIMIT_S)
        assert not thread.is_alive(), "the client does not come back from its commit"
        for partition, offset in ledger.acknowledged.items():
            lower[partition] = max(offset, lower.get(partition, 0))
        found = committed()
        for partition, offset in found.items():
            assert lower.get(partition, 0) <= offset <= ledger.sent[partition], f"partition {partition}"
            assert offset == 0 or offset % PAIRS == partition % PAIRS, f"partition {partition}"
        assert set(lower) <= set(found)
        for pair in range(PAIRS):
            assert found.get(pair) == found.get(pair + PAIRS), f"commit torn apart at pair {pair}"
    broker.restart()
    assert committed() == found


def _commit(
    ledger: Ledger,
    committer: Callable[[], AbstractContextManager[Callable[[dict[int, int]], object]]],
    stopping: threading.Event,
) -> None:
    with committer() as commit:
        number = max(ledger.sent.values(), default=0)
        while not stopping.is_set():
            number += 1
            offsets = {number % PAIRS: number, number % PAIRS + PAIRS: number}
            ledger.sent.update(offsets)
            try:
                commit(offsets)
            except Exception:
                stopping.wait(0.02)  # the broker is down: whether this commit counts is not known
            else:
                ledger.acknowledged.update(offsets)
                ledger.count += 1
