"""The last minutes as one timeline, from the journal: requests a second by API, errors, and what stands out.

What stands out: requests that were refused, faults that have acted, members that came or left, transactions that ended,
and moves of the clock, which are found where the cluster's time and the measured one part. Beside the journal, and
without it: starts, resets and restores of the cluster, and brokers that were stopped, paused and started again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict
from urllib.parse import quote, urlencode

from broker.journal.ring import FRAMES_BITS
from broker.shell.control.of_cluster.clock import ClockRow, show_clock
from broker.shell.control.routes import Call
from broker.shell.page.tail import newest
from broker.shell.page.texts import cut
from broker.shell.page.windows import number, slices

if TYPE_CHECKING:
    from broker.journal.reading import Entry
    from broker.journal.ring import Ring
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.happenings import Happening

MOST_PIECES: Final = 20_000  # of the journal that the first look goes back
BEFORE: Final = 2000  # pieces before the last look, for requests that have been answered since
MOST_EVENTS: Final = 300
LOOKED_AT_ONCE: Final = 25  # requests that are decoded, before clients are served again
USUAL_MINUTES: Final = 10
MOST_MINUTES: Final = 120
JUMP_MS: Final = 1500  # by which two clocks part, for it to be a move
TEXT: Final = 300
NO_REQUEST: Final = -1  # the number of an event that no request has made
JOINS: Final = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
COMMITS: Final = ("OffsetCommit", "TxnOffsetCommit")
USUAL_ERRORS: Final = frozenset({"MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS"})  # each group meets them


class SecondRow(TypedDict):
    """A second with its requests by API, how many were answered with an error, and the longest latency."""

    at_ms: int
    apis: dict[str, int]
    errors: int
    commits: int
    refused: int
    worst_ms: float


class EventRow(TypedDict):
    """What stands out; `number` is that of the request in the journal, or -1; `refused`: it was answered with an error
    that not every group meets, by the broker or by a fault."""

    at_ms: int
    kind: str
    text: str
    client: str
    number: int
    fault: str
    refused: bool


class Timeline(TypedDict):
    """Seconds and events in order of time; `next` is the path of what comes after them."""

    bytes: int
    begins: bool
    seconds: list[SecondRow]
    events: list[EventRow]
    clock: ClockRow
    next: str


async def show_timeline(cluster: ClusterServer, call: Call) -> Timeline:
    """Seconds and events since a look before, or of the last minutes. Errors: RefusedError."""
    ring, since = cluster.broker.clients.journal, number(call, "since", 0)
    minutes = number(call, "minutes", USUAL_MINUTES, MOST_MINUTES, 1)
    done, happenings = number(call, "done", 0), cluster.happenings
    from_ms = cluster.clock.now_ms() - minutes * 60_000
    clock = await show_clock(cluster, call)
    answer: Timeline = {"bytes": 0, "begins": False, "seconds": [], "events": [], "clock": clock, "next": ""}
    events = [_happened(each) for each in happenings.kept if each.number > done and each.at_ms >= from_ms]
    seen, answer["begins"] = 0, not since and not done
    if ring is not None:
        seen = ring.seen
        if since > seen:  # numbers have begun again: after a reset or a restore
            since, answer["begins"] = 0, True
        most = min(MOST_PIECES, max(0, seen - since) + BEFORE)
        found = _Timeline(ring, since << FRAMES_BITS, from_ms if not since else 0)
        async for entry in slices(cluster, await newest(cluster, ring, most), LOOKED_AT_ONCE):
            found.add(entry)
        answer |= {"bytes": ring.limit_bytes, "seconds": found.of_seconds()}
        events += found.events[-MOST_EVENTS:]
    answer["events"] = sorted(events, key=lambda event: event["at_ms"])
    words = {**call.query, "since": str(seen), "done": str(happenings.seen)}
    answer["next"] = f"/_admin/clusters/{quote(cluster.name)}/timeline?{urlencode(words)}"
    return answer


class _Timeline:
    """What one look adds. A request counts when it came, its errors when it was answered."""

    def __init__(self, ring: Ring, since: int, from_ms: int) -> None:
        self.events: list[EventRow] = []
        self._ring = ring
        self._since = since
        self._from_ms = from_ms
        self._seconds: dict[int, SecondRow] = {}
        self._last: tuple[int, int] | None = None  # of the entry before: the cluster's time and the measured one

    def of_seconds(self) -> list[SecondRow]:
        """In order of time."""
        return [self._seconds[at] for at in sorted(self._seconds)]

    def add(self, entry: Entry) -> None:
        """Take the next request of the journal."""
        last, self._last = self._last, (entry.at_ms, entry.at_us)
        is_new = entry.number >= self._since
        if entry.at_ms < self._from_ms:
            return
        if is_new and last is not None:
            moved_ms = entry.at_ms - last[0] - (entry.at_us - last[1]) // 1000
            if abs(moved_ms) > JUMP_MS:
                self._event(entry, "clock", f"the clock moved by {moved_ms / 1000:+.1f} s")
        second = self._second(entry.at_ms)
        if is_new:
            second["apis"][entry.api] = second["apis"].get(entry.api, 0) + 1
        if entry.answered >= self._since and entry.answered >= 0:
            self._answered(entry, second)

    def _second(self, at_ms: int) -> SecondRow:
        at = at_ms // 1000
        empty: SecondRow = {"at_ms": at * 1000, "apis": {}, "errors": 0, "commits": 0, "refused": 0, "worst_ms": 0.0}
        return self._seconds.setdefault(at, empty)

    def _answered(self, entry: Entry, second: SecondRow) -> None:
        from broker.journal.reading import error_names  # 5 ms: most brokers keep no journal

        errors = error_names(entry.response())
        notes = self._ring.notes(entry.peer, entry.correlation_id)
        second["errors"] += bool(errors)
        second["worst_ms"] = max(second["worst_ms"], entry.latency_us / 1000)
        if entry.api in COMMITS:
            second["refused" if errors else "commits"] += 1
        is_refused, names = bool(errors) and not USUAL_ERRORS.issuperset(errors), ", ".join(errors)
        if fault := notes.get("fault", ""):
            text = f"{entry.api}: {names} by {fault}" if names else f"{entry.api}: {fault}"
            self._event(entry, "fault", text, fault=fault, is_refused=is_refused)
        elif is_refused:
            self._event(entry, "refused", f"{entry.api}: {names}. {notes.get('why', '')}", is_refused=True)
        if (what := _stands_out(entry)) and not errors:
            self._event(entry, *what)

    def _event(self, entry: Entry, kind: str, text: str, fault: str = "", *, is_refused: bool = False) -> None:
        client = cut(entry.client_id, 100)
        row: EventRow = {
            "at_ms": entry.at_ms,
            "kind": kind,
            "text": cut(text.strip(), TEXT),
            "client": client,
            "number": entry.number,
            "fault": fault,
            "refused": is_refused,
        }
        self.events.append(row)


def _happened(each: Happening) -> EventRow:
    at_ms, text = each.at_ms, each.text
    none: EventRow = {
        "at_ms": at_ms,
        "kind": "restart",
        "text": text,
        "client": "",
        "number": NO_REQUEST,
        "fault": "",
        "refused": False,
    }
    return none


def _stands_out(entry: Entry) -> tuple[str, str] | None:
    """The kind of an event and its text; None: the request is one of many."""
    if entry.api in ("JoinGroup", "LeaveGroup"):
        request: Any = entry.request()
        return "rebalance", f"{entry.api} of group {getattr(request, 'group_id', '?')}"
    if entry.api in JOINS:
        request = entry.request()
        epoch = getattr(request, "member_epoch", 1)
        if epoch <= 0:
            return "rebalance", f"a member {'joins' if epoch == 0 else 'leaves'} group {request.group_id}"
    if entry.api == "EndTxn":
        request = entry.request()
        word = "commits" if getattr(request, "committed", False) else "aborts"
        return "transaction", f"{getattr(request, 'transactional_id', '?')} {word}"
    return None
