"""Is a history one that Kafka's promises allow? Pure: operations and what was read at the end in, sentences out.

atomic      what a transaction wrote is shown whole or not at all, on all partitions and with its offset
once        no value is in the log twice, but for those of producers that are not idempotent
in order    the values of one idempotent producer are in the order in which they were sent, without one left out
isolated    read_committed never showed what is not shown at the end, nor anything twice or in another order
durable     what was acknowledged is where the client was told
forward     high watermark and last stable offset of a partition never go back
linear      committed offsets of a group are a register: one writer, any number of readers
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from histories.history import Op

Log = dict[int, list[tuple[int, str]]]  # partition -> (offset, value), by rising offset


class Final:
    """What was read at the end: all records, those that read_committed shows, and committed offsets by group."""

    def __init__(self, records: Log, shown: Log, committed: Mapping[str, int]) -> None:
        self.records = records
        self.shown = shown
        self.committed = dict(committed)


def wrong(ops: list[Op], final: Final) -> Iterator[str]:
    """All that is wrong, in sentences."""
    for check in (once, durable, atomic, in_order, isolated, forward, linear, remade):
        for sentence in check(ops, final):
            yield f"{check.__name__}: {sentence}"


def _of(ops: Iterable[Op], kind: str) -> Iterator[Op]:
    return (op for op in ops if op.kind == kind)


def once(ops: list[Op], final: Final) -> Iterator[str]:
    """No value twice, and none that was not sent."""
    sent = {op.facts["value"] for op in _of(ops, "send")}
    again = {op.facts["value"] for op in _of(ops, "send") if op.facts.get("plain")}
    for op in _of(ops, "transaction"):
        sent |= {value for values in op.facts["values"].values() for value in values}
    times = Counter(value for records in final.records.values() for _, value in records)
    yield from (f"{value} is there {count} times" for value, count in times.items() if count > 1 and value not in again)
    yield from (f"{value} was never sent" for value in times if value not in sent)


def durable(ops: list[Op], final: Final) -> Iterator[str]:
    """Acknowledged records are at the offsets that their senders were told."""
    at = {partition: dict(records) for partition, records in final.records.items()}
    for op in _of(ops, "send"):
        partition, value = op.facts["partition"], op.facts["value"]
        if op.is_done:
            there = at.get(partition, {}).get(op.facts["offset"])
            if there != value:
                yield f"{value} was acknowledged at {partition}/{op.facts['offset']}, where {there} is"


def atomic(ops: list[Op], final: Final) -> Iterator[str]:
    """All records of a transaction or none; the last shown one of a group has its offset committed."""
    shown = {(partition, value) for partition, records in final.shown.items() for _, value in records}
    last: dict[str, int] = {}
    for op in _of(ops, "transaction"):
        what = f"transaction {op.facts['offset']} of {op.worker}"
        seen = {(int(p), value) in shown for p, values in op.facts["values"].items() for value in values}
        if len(seen) > 1:
            yield f"{what} is shown in part"
        is_shown = True in seen
        if op.is_done and op.facts["commit"] and not is_shown:
            yield f"{what} was committed and is not shown"
        if is_shown and (op.is_done is False or not op.facts["commit"]):
            yield f"{what} was not committed and is shown"
        if is_shown:
            last[op.facts["group"]] = op.facts["offset"]
    for group, offset in last.items():
        if final.committed.get(group) != offset:
            yield f"{group} has {final.committed.get(group)} committed, and the records of {offset} are shown"


def in_order(ops: list[Op], final: Final) -> Iterator[str]:
    """Of one idempotent producer: the order of sending, and no gap below what is there."""
    runs: dict[tuple[str, int], list[Op]] = defaultdict(list)
    for op in _of(ops, "send"):
        if op.facts.get("run") is not None:
            runs[op.facts["run"], op.facts["partition"]].append(op)
    for (run, partition), sent in runs.items():
        place = {value: number for number, (_, value) in enumerate(final.records.get(partition, []))}
        there = [op.facts["value"] for op in sent if op.facts["value"] in place]
        if [place[value] for value in there] != sorted(place[value] for value in there):
            yield f"{run} is out of order in {partition}"
        first = [op.facts["value"] for op in sent[: len(there)]]
        if there != first and all(op.is_done is not False for op in sent):
            yield f"{run} has a gap in {partition}: {sorted(set(first) - set(there))[:1]} is missing"


def isolated(ops: list[Op], final: Final) -> Iterator[str]:
    """What a read_committed reader was shown is shown at the end, at the same place, in the same order."""
    shown = {partition: dict(records) for partition, records in final.shown.items()}
    for op in _of(ops, "read"):
        partition = op.facts["partition"]
        records = [tuple(each) for each in op.facts.get("records", [])]
        for offset, value in records:
            there = shown.get(partition, {}).get(offset)
            if there != value:
                yield f"a reader was shown {value} at {partition}/{offset}, where {there} is"
                break
        if not records:
            continue
        low, high = records[0][0], records[-1][0]
        between = [(offset, value) for offset, value in final.shown.get(partition, []) if low <= offset <= high]
        if records != between and all(shown.get(partition, {}).get(offset) == value for offset, value in records):
            yield f"a reader of {partition} was not shown all of {low} to {high}"


def forward(ops: list[Op], final: Final) -> Iterator[str]:
    """An answer that came before another was asked for has no higher offsets than that one."""
    for key in ("high", "stable"):
        by_partition: dict[int, list[Op]] = defaultdict(list)
        for op in _of(ops, "read"):
            if op.is_done:
                by_partition[op.facts["partition"]].append(op)
        for partition, reads in by_partition.items():
            yield from _back(reads, key, f"{key} of {partition}")


def _back(ops: list[Op], key: str, what: str) -> Iterator[str]:
    """Operations that were told less than one that had ended before they began."""
    ended = sorted(ops, key=lambda op: op.answered)
    most, at = None, 0
    for op in sorted(ops, key=lambda op: op.asked):
        while at < len(ended) and ended[at].answered < op.asked:
            value = ended[at].facts[key]
            most = value if most is None else max(most, value)
            at += 1
        if most is not None and op.facts[key] < most:
            yield f"{what} was {most}, then {op.facts[key]}"


def linear(ops: list[Op], final: Final) -> Iterator[str]:
    """A register for each group, written with rising numbers by one writer."""
    groups: dict[str, tuple[list[Op], list[Op]]] = defaultdict(lambda: ([], []))
    for op in ops:
        if op.kind == "commit":
            groups[op.facts["group"]][0].append(op)
        elif op.kind == "fetch offset" and op.is_done:
            groups[op.facts["group"]][1].append(op)
    for group, (writes, reads) in groups.items():
        asked_at = {op.facts["offset"]: op.asked for op in writes if op.is_done is not False}
        done = sorted((op for op in writes if op.is_done), key=lambda op: op.answered)
        for read in reads:
            value = read.facts["offset"]
            if value >= 0 and asked_at.get(value, read.answered) >= read.answered:
                yield f"{group}: {value} was read, and no client had committed it"
            least = max((op.facts["offset"] for op in done if op.answered < read.asked), default=-1)
            if value < least:
                yield f"{group}: {value} was read after {least} was committed"
        yield from _back(reads, "offset", f"the offset of {group}")
        last = done[-1].facts["offset"] if done else -1
        if final.committed.get(group, -1) < last:
            yield f"{group}: {final.committed.get(group)} at the end, and {last} was committed"


def remade(ops: list[Op], final: Final) -> Iterator[str]:
    """A topic that is made again has what was written to it since, and nothing older."""
    for op in _of(ops, "remake"):
        if op.is_done and op.facts["found"] != op.facts["sent"]:
            yield f"{op.facts['topic']} has {op.facts['found'][:3]}, not {op.facts['sent'][:3]}"


def as_before(one: Final, other: Final) -> Iterator[str]:
    """A fork, or a cluster that was restored, has what the snapshot had."""
    for name in ("records", "shown", "committed"):
        if getattr(one, name) != getattr(other, name):
            yield f"as_before: {name} are not those of the snapshot"


def unseen(ops: list[Op]) -> list[str]:
    """The kinds of operations of which none was answered: nothing that was seen of them was right."""
    seen = {op.kind for op in ops if op.is_done}
    return [kind for kind in ("send", "transaction", "commit", "fetch offset", "read") if kind not in seen]


def counted(ops: list[Op]) -> dict[str, Any]:
    """How many operations of each kind there were, and how many were answered."""
    asked, done = Counter(op.kind for op in ops), Counter(op.kind for op in ops if op.is_done)
    return {kind: [done[kind], asked[kind]] for kind in sorted(asked)}
