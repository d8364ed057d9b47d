"""Plays a run to its end and counts: answers that are the same, that differ, and that decide nothing.

A difference that SUPPORTED.md names is a known departure (departures.py), counted by its name. What follows from the
moment, not from the request, is undecided, by a rule with a name: how much a Fetch found, who leads a group and when it
rebalances, what a cluster answers that is not ready yet. Two runs on Kafka differ in it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from momus.cli.replay.bundle import SENT, TOOK, Event, frames
from momus.cli.replay.departures import departure_of
from momus.cli.replay.player import GONE, LATE, NOT_READY, UNREADABLE, Asked, Found, Link, Player, Target
from protocol.api import ApiKey, response_class
from protocol.codegen import codec
from protocol.header import decode_response_header

FETCHES: Final = ("Fetch", "ShareFetch")
GROUPS: Final = (
    "JoinGroup",
    "SyncGroup",
    "LeaveGroup",
    "Heartbeat",
    "DescribeGroups",
    "ListGroups",
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
    "ShareGroupHeartbeat",
    "ShareGroupDescribe",
    "StreamsGroupHeartbeat",
    "StreamsGroupDescribe",
)
# ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED, FENCED_ and STALE_MEMBER_EPOCH
REBALANCING: Final = (22, 25, 27, 79, 110, 113)
UNKNOWN: Final = (49, 82)  # INVALID_PRODUCER_ID_MAPPING, FENCED_INSTANCE_ID
COMMITTED: Final = ("length", "committed_offset", "committed_leader_epoch", "metadata")
SCRAM: Final = ("AlterUserScramCredentials", "DescribeUserScramCredentials")  # after it: the users that it has made
# What must not be taken twice: where the cluster was not ready, a client asks again, and knows no member id yet.
TAKEN_ONCE: Final = (
    ApiKey.PRODUCE,
    ApiKey.JOIN_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
)
ENDS: Final = (("ListOffsets", "offset"), ("ListOffsets", "timestamp"), ("OffsetForLeaderEpoch", "end_offset"))
# A Fetch of a session names the partitions that have something new.
FOUND: Final = (
    "length",
    "topic",
    "topic_id",
    "partition_index",
    "high_watermark",
    "last_stable_offset",
    "session_id",
    "log_start_offset",
)
MEETS: Final = (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)  # the members of a group wait for each other
REBALANCED: Final = "a group that rebalanced at another moment"
UNREADY: Final = "a cluster, a coordinator or a transaction that was not ready"
MOST_GONE: Final = 20
MOST_SHOWN: Final = 20


class Judge(Player):
    """One run, played to its end."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.different: list[Found] = []
        self.undecided: Counter[str] = Counter()  # by rule
        self.known: Counter[str] = Counter()  # departures, by their names in SUPPORTED.md
        self._gone = 0
        self._moved: dict[str, str] = {}  # group or transactional id -> the rule by which it went another way
        self._refused: set[tuple[int, bytes]] = set()

    def judge(self, events: Iterable[Event]) -> None:
        """Play all events. Errors: OSError."""
        kept = list(events)
        self._refused = refused_requests(kept)
        found = self.play(kept)
        if found is not None:
            self.different.append(found)

    @property
    def same(self) -> int:
        """How many answers were the same."""
        return max(0, self.answers - self.undecided.total() - self.known.total() - len(self.different) + self._gone)

    def _is_left_out(self, connection: int, frame: bytes) -> bool:
        is_refused = (connection, frame[4:8]) in self._refused
        if is_refused:
            self.answers += 1
            self.undecided[UNREADY] += 1
        return is_refused

    def _waits_for_others(self, asked: Asked, link: Link) -> bool:
        """Kafka has closed a round of a group with one member more or less, by a moment; later requests settle it."""
        return link.is_late or asked.api_key in MEETS

    def _goes_on(self, found: Found, connection: int) -> bool:
        departure = departure_of(found)
        rule = rule_of(found) if departure is None else None
        moved = [self._moved[name] for name in found.names if name in self._moved]
        if rule is None and departure is None and moved and _follows(found):
            rule = moved[0]
        if rule is not None:
            if rule == REBALANCED or _goes_another_way(found) or moved:
                self._moved.update((name, rule) for name in found.names if name not in self._moved)
            self.undecided[rule] += 1
            return True
        if found.path in GONE:
            self._gone += 1
            link = self._links.pop(connection, None)
            if link is not None:
                link.socket.close()
            if self._gone > MOST_GONE:
                return False
        if departure is not None:
            self.known[departure] += 1
        else:
            self.different.append(found)
        return True

    def summary(self) -> str:
        """In one line."""
        total = self.same + len(self.different) + self.undecided.total() + self.known.total()
        known = f", {self.known.total()} known departures" if self.known else ""
        return f"{total:,} answers, {len(self.different)} different, {self.undecided.total()} undecided{known}"


def refused_requests(events: list[Event]) -> set[tuple[int, bytes]]:
    """The requests, as connection and correlation id, of which a cluster that was not ready took nothing: their clients
    have asked again, and momus would have the records twice, and members that are no client."""
    asked: dict[tuple[int, bytes], tuple[int, int]] = {}
    refused = set()
    for event in events:
        if event.kind == TOOK:
            for frame in frames(event.data):
                if (key := int.from_bytes(frame[:2], "big")) in TAKEN_ONCE:
                    asked[event.connection, frame[4:8]] = key, int.from_bytes(frame[2:4], "big")
        elif event.kind == SENT:
            for frame in frames(event.data):
                api = asked.pop((event.connection, frame[:4]), None)
                if api is not None and _is_unready(frame, *api):
                    refused.add((event.connection, frame[:4]))
    return refused


def _is_unready(frame: bytes, key: int, version: int) -> bool:
    """Whether an answer refuses all of its request for a moment."""
    try:
        _, start = decode_response_header(frame, key, version)
        answer: Any = codec(response_class(key), version).decode(frame, start)[0]
    except UNREADABLE:
        return False
    if key != ApiKey.PRODUCE:
        return bool(answer.error_code in NOT_READY)
    codes = [row.error_code for topic in answer.responses for row in topic.partition_responses]
    return bool(codes) and all(code in NOT_READY for code in codes)


def rule_of(found: Found) -> str | None:
    """The name of the rule by which a difference decides nothing; None: it is one."""
    field = found.path.rpartition(".")[2]
    if found.path in GONE and found.found == LATE.decode():
        return REBALANCED
    if found.api in FETCHES and _is_of_the_moment(found, field):
        return "how much a Fetch found at its moment"
    if field.endswith("error_code") and (found.recorded in NOT_READY or found.found in NOT_READY):
        return UNREADY
    if field.endswith("error_code") and (found.recorded in REBALANCING or found.found in REBALANCING):
        return REBALANCED
    if field == "aborted_transactions" and not found.recorded and not found.found:
        return "an empty list in the place of none, of a partition that is gone"
    if found.api in SCRAM and field.endswith("error_code"):
        return "passwords, which a recording has not"
    if found.api in GROUPS and not field.endswith("error_code"):
        return "who leads a group, and who is in it, at its moment"
    is_internal = any(str(name).startswith("__") for name in (found.recorded, found.found))
    if found.api == "Metadata" and (field in ("length", "is_internal") or (field == "name" and is_internal)):
        return "which internal topics are there already"
    if (found.api, field) in ENDS:
        return "where a partition ended at its moment"
    return None


def _goes_another_way(found: Found) -> bool:
    """Whether momus gave no producer id, its coordinator of that transaction being another node."""
    return found.api == "InitProducerId" and found.found in NOT_READY


def _follows(found: Found) -> bool:
    """Whether a difference follows from a round of its group that had other members, or from a producer that got no
    id: who is not known is refused, with its commits."""
    field = found.path.rpartition(".")[2]
    is_refused = field.endswith("error_code") and (found.found in UNKNOWN or found.recorded in UNKNOWN)
    return is_refused or (found.api == "OffsetFetch" and field in COMMITTED)


def _is_of_the_moment(found: Found, field: str) -> bool:
    if field == "records":
        ours: Any = found.recorded or []
        theirs: Any = found.found or []
        if not (isinstance(ours, list) and isinstance(theirs, list)):
            return True  # a batch that the limit has cut
        shorter = min(len(ours), len(theirs))
        return bool(ours[:shorter] == theirs[:shorter])
    return field in FOUND


def report(judge: Judge, what: str) -> str:
    """The result in Markdown."""
    lines = [f"# {what}", "", f"{judge.summary()}.", ""]
    if judge.different:
        lines += ["| request | API | field | recorded | momus |", "|---|---|---|---|---|"]
        for each in judge.different[:MOST_SHOWN]:
            shown = [str(value).replace("|", "\\|")[:120] for value in (each.path, each.recorded, each.found)]
            lines.append(f"| {each.number} | {each.api} v{each.version} | {' | '.join(shown)} |")
        lines.append("")
    if judge.known:
        lines += ["| known departure, by the words of SUPPORTED.md | answers |", "|---|---|"]
        lines += [f"| {name} | {count} |" for name, count in judge.known.most_common()]
        lines.append("")
    if judge.undecided:
        lines += ["| undecided, for it follows from | answers |", "|---|---|"]
        lines += [f"| {rule} | {count} |" for rule, count in judge.undecided.most_common()]
        lines.append("")
    return "\n".join([*lines, *(f"* {note}" for note in judge.notes)]) + "\n"


def junit(judge: Judge, what: str) -> str:
    """The result as JUnit XML: a test case for each answer that differs, and one for all others."""
    from xml.sax.saxutils import quoteattr

    cases = [f'  <testcase classname="momus.compare" name={quoteattr(f"{judge.same} answers are the same")}/>']
    for each in judge.different:
        name = quoteattr(f"request {each.number}: {each.api} v{each.version} {each.path}")
        cases += [
            f'  <testcase classname="momus.compare" name={name}>',
            f"    <failure message={quoteattr(each.sentence())}/>",
            "  </testcase>",
        ]
    skipped = [(rule, f"{count} answers undecided") for rule, count in judge.undecided.items()]
    skipped += [(name, f"{count} answers, a departure that SUPPORTED.md names") for name, count in judge.known.items()]
    for name, message in skipped:
        cases += [
            f'  <testcase classname="momus.compare" name={quoteattr(name)}>',
            f"    <skipped message={quoteattr(message)}/>",
            "  </testcase>",
        ]
    tests = 1 + len(judge.different) + len(skipped)
    head = (
        f'<testsuite name={quoteattr(what)} tests="{tests}" failures="{len(judge.different)}" skipped="{len(skipped)}">'
    )
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', head, *cases, "</testsuite>"]) + "\n"
