"""The rules by which a JSON Schema accepts what was written by another, and the walk that finds its changes.

A change of the writer's schema to the reader's has a kind. COMPATIBLE has the kinds with which every document of the
writer is one of the reader; SENTENCES what is said of the others (json_changes.py). Object and array have a content
model: open (anything may be added), closed (nothing may) or partially open (what a schema or a pattern allows); it
decides whether a property may come or go (json_objects.py).

No library has these rules. Source: Confluent's documentation, "Schema evolution and compatibility for JSON Schema";
kinds, paths and sentences are those of its registry (json/diff), under the policy STRICT.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from broker.registry.formats.json_changes import COMPATIBLE, finding
from broker.registry.formats.json_model import (
    ALL,
    ANY,
    ARRAY,
    COMBINED,
    CONST,
    EMPTY,
    ENUM,
    FALSE,
    NOT,
    NUMBER,
    OBJECT,
    ONE,
    STRING,
    Node,
)
from broker.registry.formats.json_objects import compare_arrays, compare_objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.registry.formats.finding import Finding
    from broker.registry.formats.json_objects import Change

DESCRIBING: Final = {"$id": "ID", "title": "TITLE", "description": "DESCRIPTION", "default": "DEFAULT"}
MOST: Final = 1000
OF_STRING: Final = {"maxLength": "MAX_LENGTH", "minLength": "MIN_LENGTH"}
OF_NUMBER: Final = {
    "maximum": "MAXIMUM",
    "minimum": "MINIMUM",
    "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
    "exclusiveMinimum": "EXCLUSIVE_MINIMUM",
}


def differences(reader: Node, writer: Node, compatible: frozenset[str] = COMPATIBLE) -> list[Finding]:
    """Why the first does not accept all that the second does; none: it does. `compatible`: kinds of changes."""
    known: frozenset[tuple[int, int]] = frozenset()
    while True:
        walk = Walk(known, compatible)
        found = walk.compare(writer, reader)
        refuted = known | walk.refuted()
        if not walk.has_assumed or refuted == known:
            return [finding(kind, path) for kind, path in found if kind not in compatible]
        known = refuted  # what was taken for compatible within a circle is not: once more with that


class Walk:
    """One comparison of two graphs. A pair that is met within itself is taken for compatible.

    known        pairs that an earlier walk has found incompatible: they are not taken for compatible again.
    compatible   kinds of changes that are.
    """

    def __init__(self, known: frozenset[tuple[int, int]], compatible: frozenset[str] = COMPATIBLE) -> None:
        self._compatible = compatible
        self.has_assumed = False
        self._known = known
        self._open: set[tuple[int, int]] = set()
        self._done: dict[tuple[int, int], list[Change]] = {}

    def refuted(self) -> frozenset[tuple[int, int]]:
        """The pairs that are not compatible."""
        return frozenset(pair for pair, found in self._done.items() if not self.fits(found))

    def fits(self, changes: Iterable[Change]) -> bool:
        """Whether all of these changes are compatible."""
        return all(kind in self._compatible for kind, _ in changes)

    def compare(self, old: Node | None, new: Node | None) -> list[Change]:
        """The changes between two schemas, with paths below both."""
        if old is None or new is None:
            return [] if old is new else [("SCHEMA_ADDED" if old is None else "SCHEMA_REMOVED", ())]
        old, new = old.resolved(), new.resolved()
        pair = (id(old), id(new))
        if pair in self._open:
            if pair in self._known:
                return [("TYPE_CHANGED", ())]
            self.has_assumed = True
            return []
        if pair not in self._done:
            self._open.add(pair)
            try:
                self._done[pair] = self._bounded(self._compare(old, new))
            finally:
                self._open.discard(pair)
        return self._done[pair]

    def _bounded(self, changes: list[Change]) -> list[Change]:
        """At most MOST changes, those that do not fit first: names that are used twice, each time by two, have many."""
        if len(changes) <= MOST:
            return changes
        return ([each for each in changes if each[0] not in self._compatible] or changes)[:MOST]

    def _compare(self, old: Node, new: Node) -> list[Change]:
        found = self._branch(old, new)
        if found is not None:
            return found
        if old.kind != new.kind:
            if old.kind == FALSE or new.kind == EMPTY:
                return []
            if old.keyword("connect.type") == new.keyword("connect.type") == "bytes":
                return []
            return [("TYPE_CHANGED", ())]
        changes: list[Change] = [
            (f"{name}_CHANGED", ()) for key, name in DESCRIBING.items() if old.keyword(key) != new.keyword(key)
        ]
        return changes + self._same(old, new)

    def _branch(self, old: Node, new: Node) -> list[Change] | None:
        """A schema against one of those that are combined; None: that decides nothing."""
        if (old.kind == COMBINED) == (new.kind == COMBINED):
            return None
        combined = new if new.kind == COMBINED else old
        rows = combined.parts["subschemas"]
        is_sum = combined is new
        if len(rows) != 1 and combined.criterion not in ((ANY, ONE) if is_sum else (ALL,)):
            return None
        for each in rows:
            found = self.compare(old, each) if is_sum else self.compare(each, new)
            if self.fits(found):
                kind = "SUM_TYPE_EXTENDED" if is_sum else "PRODUCT_TYPE_NARROWED"
                return found if len(rows) == 1 else [*found, (kind, ())]
        return None

    def _same(self, old: Node, new: Node) -> list[Change]:
        """The changes between two schemas of one kind."""
        if old.kind == STRING:
            return [*_limits(old, new, OF_STRING), *_pattern(old, new)]
        if old.kind == NUMBER:
            return _numbers(old, new)
        if old.kind == ENUM:
            return _enums(old, new)
        if old.kind == CONST:
            return [("ENUM_ARRAY_CHANGED", ("const",))] if old.keyword("const") != new.keyword("const") else []
        if old.kind == COMBINED:
            return self._combined(old, new)
        if old.kind == NOT:
            fits = self.fits(self.compare(new.parts["not"], old.parts["not"]))  # the other way round
            return [("NOT_TYPE_NARROWED" if fits else "NOT_TYPE_EXTENDED", ("not",))]
        if old.kind == OBJECT:
            return compare_objects(self, old, new)
        return compare_arrays(self, old, new) if old.kind == ARRAY else []

    def _combined(self, old: Node, new: Node) -> list[Change]:
        """The subschemas of both, each with one that fits it."""
        criteria = _criteria(old, new)
        found: list[Change] = [] if criteria is None else [(criteria, ())]
        if criteria == "COMBINED_TYPE_CHANGED":
            return found
        olds, news = _distinct(old), _distinct(new)
        if len(olds) < len(news):
            found.append(("PRODUCT_TYPE_EXTENDED" if new.criterion == ALL else "SUM_TYPE_EXTENDED", ()))
        elif len(olds) > len(news):
            found.append(("PRODUCT_TYPE_NARROWED" if old.criterion == ALL else "SUM_TYPE_NARROWED", ()))
        fitting: dict[int, dict[int, list[Change]]] = {}
        for number, each in enumerate(olds):
            compared = {place: self.compare(each, other) for place, other in enumerate(news)}
            fitting[number] = {place: changes for place, changes in compared.items() if self.fits(changes)}
        matched = _matching(fitting)
        for place, number in matched.items():
            above = (f"{old.criterion}/{number}",)
            found += [(kind, (*above, *path)) for kind, path in fitting[number][place]]
        if len(matched) < min(len(olds), len(news)):
            found.append(("COMBINED_TYPE_SUBSCHEMAS_CHANGED", ()))
        return found


def _criteria(old: Node, new: Node) -> str | None:
    """What the change from one way of combining to another is; None: there is none."""
    if old.criterion == new.criterion:
        return None
    single_old, single_new = len(old.parts["subschemas"]) == 1, len(new.parts["subschemas"]) == 1
    is_wider = (
        new.criterion == ANY
        or (single_old and single_new)
        or (single_old and new.criterion == ONE)
        or (single_new and old.criterion == ALL)
    )
    return "COMBINED_TYPE_EXTENDED" if is_wider else "COMBINED_TYPE_CHANGED"


def _distinct(node: Node) -> list[Node]:
    """The subschemas without those that are there twice."""
    rows: dict[tuple[str, bool, str], Node] = {}
    for each in node.parts["subschemas"]:
        rows.setdefault((each.kind, each.is_integer, json.dumps(each.raw, sort_keys=True, default=str)), each)
    return list(rows.values())


def _matching(fitting: dict[int, dict[int, list[Change]]]) -> dict[int, int]:
    """A largest set of pairs of which no two share a member: place of the new one -> number of the old."""
    matched: dict[int, int] = {}

    def place(number: int, tried: set[int]) -> bool:
        for other in fitting[number]:
            if other not in tried:
                tried.add(other)
                if other not in matched or place(matched[other], tried):
                    matched[other] = number
                    return True
        return False

    for number in fitting:
        place(number, set())
    return matched


def _limits(old: Node, new: Node, names: dict[str, str]) -> list[Change]:
    """The changes of keywords that are numbers."""
    found: list[Change] = []
    for key, name in names.items():
        before, after = _number(old.keyword(key)), _number(new.keyword(key))
        if before == after:
            continue
        if before is None or after is None:
            found.append((f"{name}_{'ADDED' if before is None else 'REMOVED'}", (key,)))
        else:
            found.append((f"{name}_{'INCREASED' if before < after else 'DECREASED'}", (key,)))
    return found


def _number(value: Any) -> Decimal | None:
    """A keyword's number; draft 4 has true and false where later ones have limits."""
    return None if value is None or isinstance(value, bool) else Decimal(str(value))


def _pattern(old: Node, new: Node) -> list[Change]:
    before, after = old.keyword("pattern"), new.keyword("pattern")
    if before == after:
        return []
    how = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
    return [(f"PATTERN_{how}", ("pattern",))]


def _numbers(old: Node, new: Node) -> list[Change]:
    found = _limits(old, new, OF_NUMBER)
    before, after = _number(old.keyword("multipleOf")), _number(new.keyword("multipleOf"))
    if before != after:
        if before is None or after is None:
            how = "ADDED" if before is None else "REMOVED"
        elif before and not after % before:
            how = "EXPANDED"
        else:
            how = "REDUCED" if after and not before % after else "CHANGED"
        found.append((f"MULTIPLE_OF_{how}", ("multipleOf",)))
    if old.is_integer != new.is_integer:
        found.append(("TYPE_EXTENDED" if old.is_integer else "TYPE_NARROWED", ()))
    return found


def _enums(old: Node, new: Node) -> list[Change]:
    before, after = ({json.dumps(each, sort_keys=True) for each in node.keyword("enum")} for node in (old, new))
    if before == after:
        return []
    how = "EXTENDED" if before <= after else "NARROWED" if after <= before else "CHANGED"
    return [(f"ENUM_ARRAY_{how}", ("enum",))]
