"""Finds the requests of a run that are alike: a class has one API, client, names and state. Some of each are taken."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    Row = Mapping[str, Any]  # as GET /journal/requests tells it; `cluster`: the number of its cluster

# asked again and again while nothing happens: each state of them is looked at once
POLLS = (
    "Fetch",
    "Heartbeat",
    "ConsumerGroupHeartbeat",
    "ShareGroupHeartbeat",
    "StreamsGroupHeartbeat",
    "ShareFetch",
    "Metadata",
)
# What these do is not undone by whoever begins again: the likeliest places for a bug.
LASTING = (
    "OffsetCommit",
    "Produce",
    "EndTxn",
    "TxnOffsetCommit",
    "AddOffsetsToTxn",
    "AddPartitionsToTxn",
    "ShareAcknowledge",
)
MOST_LASTING = 10  # of a class of these
OF_TRANSACTIONS = ("AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "Produce")
STATES = {"JoinGroup": "joining", "SyncGroup": "stable", "LeaveGroup": "left", "ConsumerGroupHeartbeat": "member"}


class Request(NamedTuple):
    """One request of a class: `names` that tell it from others, the `number` of it among those that have these names.

    position   in its class: "first", "second", "middle", "last" or "other".
    """

    cluster: int
    api: str
    names: tuple[tuple[str, str], ...]
    number: int
    position: str
    state: str
    member: str
    producer_id: int
    has_group: bool
    has_transaction: bool
    is_open: bool
    group_is_empty: bool


class Found(NamedTuple):
    """What a run has asked: how many classes, and the requests that stand for them."""

    classes: int
    requests: list[Request]


def find(rows: Sequence[Row], other: Iterable[Row] = (), *, all_of_them: bool = False) -> Found:
    """The classes of the requests of a run, oldest first.

    other        the requests of another run of the same test: a client id or a name that it has not is drawn at random,
                 and the part with digits stands for any.
    all_of_them  every request is taken, not some of each class.
    """
    known = {name for row in other for name in _named_in(row)}
    clients = {str(row["client_id"]): pattern(str(row["client_id"]), known) for row in rows}
    nameless = {(row["cluster"], row["api"]) for row in rows if not row["known"]}
    askers: dict[object, set[str]] = {}
    for row in rows:
        askers.setdefault((row["cluster"], row["api"]), set()).add(clients[str(row["client_id"])])
    states: dict[tuple[int, str], str] = {}
    seen: dict[tuple[int, str], list[Row]] = {}
    classes: dict[object, list[Request]] = {}
    for row in rows:
        cluster, api = int(row["cluster"]), str(row["api"])
        group, transaction = _one(row["groups"]), _one(row["transactional_ids"])
        client = clients[str(row["client_id"])] if len(askers[cluster, api]) > 1 else ""
        names = _names(row, client, known, (cluster, api) in nameless)
        earlier = seen.setdefault((cluster, api), [])
        earlier.append(row)
        group_state = states.get((cluster, f"group {group}"), "") if group else ""
        transaction_state = states.get((cluster, f"transaction {transaction}"), "") if transaction else ""
        request = Request(
            cluster,
            api,
            names,
            sum(_fits(each, names) for each in earlier),  # as a fault with these names counts them
            "",
            f"{group_state} {transaction_state}".strip(),
            str(row["member"]),
            int(row["producer_id"]),
            bool(group),
            bool(transaction),
            transaction_state == "open" or (bool(transaction) and api in OF_TRANSACTIONS),
            group_state in ("", "left"),
        )
        classes.setdefault((cluster, api, names, request.state), []).append(request)
        _move_on(states, cluster, api, group, transaction)
    chosen = [
        request._replace(position=position)
        for found in classes.values()
        for request, position in _some(found, all_of_them)
    ]
    return Found(len(classes), chosen)


def why_not(rows: Sequence[Row], dropped: int, *, is_marked: bool = False) -> str:
    """Why a test with these requests is not explored; "": it is. `dropped`: bytes that had to make room; `is_marked`:
    it has the marker momus_explore.

    What happens beside a fault of the test's own would be a second thing at once, and move that to another request.
    """
    if not rows:
        return "no client asked its cluster anything"
    if dropped:
        return "it asks too much for one journal: give its clusters less to do"
    if not is_marked and any(row["fault"] for row in rows):
        return "it sets faults of its own, and has no marker momus_explore"
    return ""


def pattern(name: str, known: set[str]) -> str:
    """A client id or another name as a filter of faults has it: what another run does not have is a pattern."""
    if not known or not name or name in known:
        return name
    return re.sub(r"[0-9a-zA-Z]*\d[0-9a-zA-Z-]*", "*", name)


def _fits(row: Row, names: tuple[tuple[str, str], ...]) -> bool:
    """Whether a request has these names, of which some are patterns."""
    return all(any(fnmatchcase(each, value) for each in _of(row, name)) for name, value in names)


def _of(row: Row, name: str) -> Sequence[str]:
    return (str(row["client_id"]),) if name == "client_id" else row[f"{name}s"]


def _named_in(row: Row) -> Iterator[str]:
    yield str(row["client_id"])
    for words in ("groups", "topics", "transactional_ids"):
        yield from row[words]


def _names(row: Row, client: str, known: set[str], is_nameless: bool) -> tuple[tuple[str, str], ...]:
    """What tells a request from others of its API. `client`: where several ask it; those of an API of which one was too
    large to be known are told by client alone. `known`: names that are no patterns."""
    found = {"client_id": client}
    if not is_nameless:
        if group := _one(row["groups"]):
            found["group"] = pattern(group, known)
        if transaction := _one(row["transactional_ids"]):
            found["transactional_id"] = pattern(transaction, known)
        if row["api"] == "Produce" and (topic := _one(row["topics"])):
            found["topic"] = pattern(topic, known)
    return tuple(sorted((name, value) for name, value in found.items() if value and not set(value) & set("[]?")))


def _one(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ""


def _some(found: Sequence[Request], all_of_them: bool) -> list[tuple[Request, str]]:
    """Those that stand for a class: first, second, middle and last; of polls the first; of what lasts MOST_LASTING, for
    a bug may be in the work between two of them alone."""
    if all_of_them:
        return [(each, "first" if not index else "middle") for index, each in enumerate(found)]
    if found[0].api in POLLS:
        return [(found[0], "first")]
    last = len(found) - 1
    taken = {0: "first"}
    for index, position in ((last, "last"), (1, "second"), (len(found) // 2, "middle")):
        if index <= last:
            taken.setdefault(index, position)
    if found[0].api in LASTING:
        for number in range(MOST_LASTING):
            index = round(number * last / (MOST_LASTING - 1)) if len(found) > MOST_LASTING else min(number, last)
            taken.setdefault(index, "other")
    return [(found[index], taken[index]) for index in sorted(taken)]


def _move_on(states: dict[tuple[int, str], str], cluster: int, api: str, group: str, transaction: str) -> None:
    """The states of the group and the transaction after a request."""
    if group and api in STATES:
        states[cluster, f"group {group}"] = STATES[api]
    if transaction:
        if api == "InitProducerId" or api == "EndTxn":
            states[cluster, f"transaction {transaction}"] = "ready"
        elif api in OF_TRANSACTIONS:
            states[cluster, f"transaction {transaction}"] = "open"
