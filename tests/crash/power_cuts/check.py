"""Asks a broker that has begun on a cut disk for all that clients were told, and says what is wrong. Knows no disk."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from core_requests import fetch_request, produce_request
from txn_kit import not_aborted

from power_cuts.ledger import View
from power_cuts.load import COMPACT, KEPT, PARTITIONS
from protocol.messages.cluster import MetadataRequest
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.transactions import InitProducerIdRequest
from protocol.record import Record
from protocol.record_batch import iter_batches, iter_records

Call = Callable[[Any, int], Any]


class WrongError(Exception):
    """What a client was told does not hold."""


class Check:
    """One broker that has recovered, and what must hold of it. `call` sends a request in a version.

    view    None: nothing is known of what it holds, but what is there must be readable.
    pause   lets the broker do what it does after an answer.
    """

    def __init__(self, call: Call, view: View | None, pause: Callable[[], object] = lambda: None) -> None:
        self.call = call
        self.view = view or View([], [])
        self.is_known = view is not None
        self.pause = pause

    def run(self) -> None:
        """Errors: WrongError."""
        topics = {topic.name: topic for topic in self.call(MetadataRequest(topics=None), 9).topics}
        if not self.is_known:
            for topic in topics.values():
                for part in topic.partitions:
                    self._fetch(topic.name, part.partition_index, 0)
            return
        self.topics(topics)
        if KEPT not in topics:
            return
        self.producer_ids()  # before the records: it ends the transactions that are open
        read = {index: self.read(KEPT, index) for index in range(PARTITIONS)}
        self.records(read)
        self.transactions(read)
        self.commits()
        self.keys()
        for index in range(PARTITIONS):
            answer = self.call(produce_request(KEPT, index, b"after"), 9).responses[0].partition_responses[0]
            self.expect(answer.error_code == 0, f"{KEPT}-{index} takes no records: error {answer.error_code}")

    def expect(self, holds: bool, otherwise: str) -> None:
        """Errors: WrongError."""
        if not holds:
            raise WrongError(otherwise)

    # -- topics

    def topics(self, found: dict[str, Any]) -> None:
        """A topic is as the last answer about it said, or as a later request would have it."""
        states: dict[str, set[bool]] = defaultdict(lambda: {False})
        values: dict[str, set[bytes | None]] = defaultdict(lambda: {None})
        for entry, must in self.view.of("topic", "made record"):
            name = entry.facts["name"]
            if entry.kind == "topic":
                exists = entry.facts["exists"]
                states[name] = {exists} if must else states[name] | {exists}
                values[name] = {None}
            else:
                values[name] = {entry.facts["value"]} if must else values[name] | {entry.facts["value"]}
        for name, allowed in states.items():
            self.expect((name in found) in allowed, f"topic {name}: is it there? {name in found}, not {allowed}")
            if allowed == {True} and name != KEPT:
                there = {record.value for record in self.read(name, 0)[0]} or {None}
                self.expect(there <= values[name], f"topic {name} has {there}, not {values[name]}")

    # -- records

    def read(self, topic: str, index: int) -> tuple[list[Record], list[bytes]]:
        """All records of a partition with their offsets, and the values that read_committed shows."""
        records: list[Record] = []
        shown: list[bytes] = []
        for isolation_level in (0, 1):
            offset = 0
            while True:
                answer = self._fetch(topic, index, offset, isolation_level=isolation_level)
                data = bytes(answer.records or b"")
                for position, header in iter_batches(data):
                    offset = header.next_offset
                    if not isolation_level and not header.is_control:
                        records += iter_records(data[position : position + header.size])
                if isolation_level:
                    shown += [record.value or b"" for record in not_aborted(data, answer.aborted_transactions)]
                if not data or offset >= answer.high_watermark:
                    break
        for _ in range(50):
            if answer.last_stable_offset == answer.high_watermark:
                break
            self.pause()
            answer = self._fetch(topic, index, 0)
        stable, high = answer.last_stable_offset, answer.high_watermark
        self.expect(stable == high, f"{topic}-{index}: a transaction stays open: {stable} of {high}")
        return records, shown

    def _fetch(self, topic: str, index: int, offset: int, **more: Any) -> Any:
        answer = self.call(fetch_request(topic, index, offset, min_bytes=0, **more), 11)
        part = answer.responses[0].partitions[0]
        self.expect(part.error_code == 0, f"{topic}-{index} cannot be read: error {part.error_code}")
        return part

    def records(self, read: dict[int, tuple[list[Record], list[bytes]]]) -> None:
        """Each is where the client was told, once, and nothing is there that was not sent."""
        sent: set[bytes] = {b"after"}
        for entry, _ in self.view.of("transaction begun"):
            sent |= set(entry.facts["values"].values())
        at = {index: {record.offset: record.value for record in records} for index, (records, _) in read.items()}
        for entry, must in self.view.of("record"):
            value, index = entry.facts["value"], entry.facts["partition"]
            sent.add(value)
            if must:
                there = at[index].get(entry.facts["offset"])
                self.expect(
                    there == value,
                    f"{KEPT}-{index}: {value[:30]!r} was acknowledged at {entry.facts['offset']}: {there}",
                )
        for index, values in at.items():
            times = Counter(values.values())
            self.expect(
                set(times) <= sent, f"{KEPT}-{index}: nobody has sent {next(iter(set(times) - sent), b'')[:30]!r}"
            )
            twice = [value for value, count in times.items() if count > 1 and value != b"after"]
            self.expect(not twice, f"{KEPT}-{index}: twice: {twice[:1]}")

    # -- transactions

    def producer_ids(self) -> None:
        """No id is given out twice; each transactional id can begin again, at once or soon."""
        known = {entry.facts["id"]: entry for entry, must in self.view.of("producer id") if must}
        fresh = self.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
        self.expect(fresh.error_code == 0, f"no producer id: error {fresh.error_code}")
        self.expect(fresh.producer_id not in known, f"producer id {fresh.producer_id} comes again")
        names = {entry.facts["name"]: entry for entry in known.values() if "name" in entry.facts}
        for name, entry in names.items():
            for _ in range(50):
                answer = self.call(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)
                if answer.error_code not in (14, 15, 16, 51):
                    break
                self.pause()
            self.expect(answer.error_code == 0, f"{name} cannot begin: error {answer.error_code}")
            newer = answer.producer_id not in known or answer.producer_epoch > entry.facts["epoch"]
            self.expect(newer, f"{name} got {answer.producer_id} with epoch {answer.producer_epoch} again")

    def transactions(self, read: dict[int, tuple[list[Record], list[bytes]]]) -> None:
        """All or nothing, on all partitions and with the offsets."""
        shown = {(index, value) for index, (_, values) in read.items() for value in values}
        ended = {id(entry.facts["values"]): (entry, must) for entry, must in self.view.of("transaction")}
        last: dict[str, int] = defaultdict(int)
        for begun, _ in self.view.of("transaction begun"):
            facts = begun.facts
            entry, must = ended.get(id(facts["values"]), (None, False))
            seen = {(index, value) in shown for index, value in facts["values"].items()}
            what = f"transaction {facts['offset']} of {facts['group']}"
            self.expect(len(seen) == 1, f"{what}: a part is shown")
            is_shown = seen == {True}
            may_be = entry is not None and facts["commit"]
            self.expect(may_be or not is_shown, f"{what} is shown; it was not committed")
            self.expect(is_shown or not (must and facts["commit"]), f"{what} was committed, and is not shown")
            last[facts["group"]] = facts["offset"] if is_shown else last[facts["group"]]
        for group, offset in last.items():
            found = self.committed(group).get(0, 0)
            self.expect(found == offset, f"{group}: offset {found} is committed, and the records of {offset} are shown")

    # -- offsets and keys

    def committed(self, group: str) -> dict[int, int]:
        """Offsets of a group by partition."""
        question = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=None)], require_stable=True
        )
        for _ in range(50):
            answer = self.call(question, 8).groups[0]
            if answer.error_code not in (14, 15, 16):
                break
            self.pause()
        self.expect(answer.error_code == 0, f"{group}: error {answer.error_code}")
        return {part.partition_index: part.committed_offset for topic in answer.topics for part in topic.partitions}

    def commits(self) -> None:
        """The offsets of a group are those of one commit, of the last one that was acknowledged or a later one."""
        least: dict[str, int] = defaultdict(int)
        most: dict[str, int] = defaultdict(int)
        for entry, must in self.view.of("commit"):
            group, offset = entry.facts["group"], entry.facts["offset"]
            most[group] = offset
            if must:
                least[group] = offset
        for group in most:
            found = set(self.committed(group).values()) or {0}
            self.expect(len(found) == 1, f"{group}: half a commit: {found}")
            value = found.pop()
            self.expect(least[group] <= value <= most[group], f"{group}: {value}, not {least[group]} to {most[group]}")

    def keys(self) -> None:
        """The last value of a key is the one that was acknowledged last, or a later one."""
        least: dict[bytes, int] = defaultdict(int)
        for entry, must in self.view.of("key"):
            if must:
                least[entry.facts["key"]] = entry.facts["number"]
        if not least:
            return
        latest = {record.key: int(record.value.split()[0]) for record in self.read(COMPACT, 0)[0]}
        for key, number in least.items():
            self.expect(latest.get(key, 0) >= number, f"{key!r}: {latest.get(key)}, not {number}")
