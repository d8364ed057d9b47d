"""Handlers of what a test expects: requests now and at its end, faults that are to act, and the last requests as lines.

What came near is shown where something is missing: requests that fit all filters but one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypedDict

from broker.journal.expected import NEAR, Expected, LimitsError
from broker.journal.lines import one_line
from broker.shell.control.of_cluster.journal import EXPECTED_OF, MOST, check_filters, look
from broker.shell.control.routes import Call, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.broker import Broker
    from broker.faults.fault import Fault
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.control.of_cluster.journal import Found

LAST: Final = 20
OF_JOURNAL: Final = ("client_id", "principal", "connection", "group", "topic", "transactional_id")  # and of faults
COUNTS: Final = ("name", "hits", "held", "calls")


class Verified(TypedDict):
    """Whether as many requests came as are expected, how many, and why not."""

    met: bool
    count: int
    why: str


class ExpectedCount(TypedDict):
    """How many expectations there are."""

    expected: int


class Unmet(TypedDict):
    """A sentence for each fault and each expectation that is not met."""

    unmet: list[str]


class Lines(TypedDict):
    """Requests, a line each."""

    lines: list[str]


async def verify_requests(cluster: ClusterServer, call: Call) -> Verified:
    """Whether as many such requests came as are expected, and why not. Errors: RefusedError."""
    wanted = _wanted(call)
    broker = cluster.broker
    seen = await look(broker, wanted.filters, 1)
    why = await _why(broker, wanted, seen)
    return {"met": not why, "count": wanted.count(seen), "why": why}


async def expect_requests(cluster: ClusterServer, call: Call) -> ExpectedCount:
    """Verify it when the test is over. Errors: RefusedError."""
    expected = EXPECTED_OF.setdefault(cluster, [])
    expected.append(_wanted(call))
    return {"expected": len(expected)}


async def verify_all(cluster: ClusterServer, call: Call) -> Unmet:
    """A sentence for each fault that never acted, and each expectation that is not met."""
    broker = cluster.broker
    unmet = [await _of_fault(broker, fault) for fault in broker.faults.all() if fault.is_unmet]
    for wanted in EXPECTED_OF.get(cluster, ()):
        why = await _why(broker, wanted, await look(broker, wanted.filters, 1))
        if why:
            unmet.append(why)
    return {"unmet": unmet}


async def forget_expected(cluster: ClusterServer, call: Call) -> ExpectedCount:
    """Expect nothing any more."""
    return {"expected": len(EXPECTED_OF.pop(cluster, ()))}


async def last_requests(cluster: ClusterServer, call: Call) -> Lines:
    """The last requests, a line each. Errors: RefusedError."""
    text = call.query.get("n", str(LAST))
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MOST):
        raise RefusedError(400, f'"n" is 1 to {MOST}, not {text:.40}')
    return {"lines": await _lines(cluster.broker, {}, int(text))}


def _wanted(call: Call) -> Expected:
    body = call.body
    filters = body.get("filters", {})
    check_filters([filters])
    try:
        return Expected(filters, body.get("times"), body.get("at_least"), body.get("at_most"))
    except LimitsError as error:
        raise RefusedError(400, str(error)) from None


async def _why(broker: Broker, wanted: Expected, seen: Found) -> str:
    """Why an expectation is not met; empty: it is."""
    if wanted.is_met(seen):
        return ""
    if wanted.lacks(seen):
        return wanted.sentence(seen, await _near(broker, wanted.filters))
    return wanted.sentence(seen, await _lines(broker, wanted.filters, NEAR))


async def _lines(broker: Broker, filters: dict[str, str], limit: int) -> list[str]:
    return [one_line(each) for each in (await look(broker, filters, limit))["entries"]]


async def _near(broker: Broker, filters: dict[str, str]) -> list[str]:
    """A line for each request that fits all filters but one, the newest first of each."""
    near: list[str] = []
    for name in filters:
        if len(filters) > 1 or name != "api":
            rest = {key: value for key, value in filters.items() if key != name}
            lines = await _lines(broker, rest, NEAR)
            near += [f"but for {name}={filters[name]}: {line}" for line in reversed(lines)]
    if not near:
        near = [f"there was: {line}" for line in reversed(await _lines(broker, {}, NEAR))]
    return near[:NEAR] or ["the journal is empty"]


async def _of_fault(broker: Broker, fault: Fault) -> str:
    shown = fault.as_json()
    what = in_words(shown)
    calls = f"{fault.calls} request{'' if fault.calls == 1 else 's'}" if fault.calls else "no request"
    near = [] if fault.calls else await _near_fault(broker, shown)
    return "\n  ".join((f"the fault {fault.name} never acted ({calls} matched it): {what}", *near))


def in_words(shown: Mapping[str, object]) -> str:
    """A fault for readers of any language: inject_error api=OffsetCommit error=NOT_COORDINATOR."""
    words = [f"{key}={text_of(value)}" for key, value in shown.items() if key not in (*COUNTS, "fault")]
    return " ".join([str(shown["fault"]), *words])


def text_of(value: object) -> str:
    """A value of a fault, as a reader expects it: names of a list with commas, and JSON's words."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(text_of, value))
    return str(value) if isinstance(value, str) else json.dumps(value)


async def _near_fault(broker: Broker, shown: Mapping[str, object]) -> list[str]:
    """Requests of the journal that fit all filters of a fault but one, if the journal knows its filters."""
    filters = {key: str(shown[key]) for key in OF_JOURNAL if key in shown}
    apis: Any = shown.get("api", [])
    if shown["fault"] == "registry" or not (apis or filters):
        return []
    near: list[str] = []
    for asked in [{"api": api, **filters} for api in apis] or [filters]:
        near += await _near(broker, asked)
    return near[:NEAR]
