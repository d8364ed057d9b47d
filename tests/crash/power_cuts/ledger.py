"""What clients asked for and were told, each with the length of the recording at that moment. Pure.

A change that a client was told of must be in every disk that is cut after that moment; what it had not asked for may be
in none that is cut before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

NEVER = 1 << 62


@dataclass
class Entry:
    """One request. told: NEVER while it was not answered, or refused."""

    kind: str
    asked: int
    told: int = NEVER
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class View:
    """What holds at one cut: what must be there, and what may be there as well. In the order in which it was asked."""

    must: list[Entry]
    may: list[Entry]

    def of(self, *kinds: str) -> Iterator[tuple[Entry, bool]]:
        """The entries of some kinds, and whether each must be there."""
        known = {id(entry) for entry in self.must}
        for entry in sorted((e for e in (*self.must, *self.may) if e.kind in kinds), key=lambda e: e.asked):
            yield entry, id(entry) in known


class Ledger:
    """All of one run."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries = list(entries)

    def ask(self, kind: str, stamp: int, **facts: Any) -> Entry:
        """A client is about to ask for a change."""
        entry = Entry(kind, stamp, facts=facts)
        self.entries.append(entry)
        return entry

    def _until(self, stamp: int, since: int = -1) -> View:
        known = [e for e in self.entries if since <= e.asked <= stamp and e.kind not in ("snapshot", "restore", "fork")]
        return View([e for e in known if e.told <= stamp], [e for e in known if e.told > stamp])

    def _copied(self, snapshot: Entry) -> View:
        """What a snapshot holds: it is taken at one moment, between the request and the answer."""
        view = self._until(snapshot.told)
        must = [e for e in view.must if e.told <= snapshot.asked]
        return View(must, [e for e in (*view.must, *view.may) if e.told > snapshot.asked])

    def _named(self, kind: str, name: str) -> Entry:
        return next(e for e in self.entries if e.kind == kind and e.facts["name"] == name)

    def view(self, cut: int) -> View | None:
        """What holds at a cut. None: the cluster is being restored; it may be as it was, restored, or empty."""
        restores = [e for e in self.entries if e.kind == "restore" and e.asked <= cut]
        if not restores:
            return self._until(cut)
        last = restores[-1]
        if last.told > cut:
            return None
        copied = self._copied(self._named("snapshot", last.facts["name"]))
        since = self._until(cut, last.told)
        return View([*copied.must, *since.must], [*copied.may, *since.may])

    def forks(self, cut: int) -> Iterator[tuple[str, View]]:
        """The forks that must be there, and what they hold: no client writes to them."""
        for entry in self.entries:
            if entry.kind == "fork" and entry.told <= cut:
                yield entry.facts["name"], self._copied(self._named("snapshot", entry.facts["snapshot"]))
