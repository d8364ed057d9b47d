"""The changes between two JSON Schemas of objects, and of arrays: their content models (json_rules.py)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Protocol

import re2

from broker.registry.formats.json_model import EMPTY, FALSE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.registry.formats.json_model import Node

Change = tuple[str, tuple[str, ...]]
OF_OBJECT: Final = {"maxProperties": "MAX_PROPERTIES", "minProperties": "MIN_PROPERTIES"}
OF_ARRAY: Final = {
    "maxItems": "MAX_ITEMS",
    "minItems": "MIN_ITEMS",
    "maxContains": "MAX_CONTAINS",
    "minContains": "MIN_CONTAINS",
}


class Comparing(Protocol):
    """The walk that both belong to."""

    def compare(self, old: Node | None, new: Node | None) -> list[Change]:
        """The changes between two schemas."""

    def fits(self, changes: Iterable[Change]) -> bool:
        """Whether all of these changes are compatible."""


def _below(path: tuple[str, ...], changes: Iterable[Change]) -> list[Change]:
    return [(kind, (*path, *rest)) for kind, rest in changes]


def _limits(old: Node, new: Node, names: dict[str, str]) -> list[Change]:
    found: list[Change] = []
    for key, name in names.items():
        before, after = old.keyword(key), new.keyword(key)
        if before is None and after is None:
            continue
        if before is None or after is None:
            found.append((f"{name}_{'ADDED' if before is None else 'REMOVED'}", (key,)))
        elif Decimal(str(before)) != Decimal(str(after)):
            found.append((f"{name}_{'INCREASED' if before < after else 'DECREASED'}", (key,)))
    return found


# -- objects


def compare_objects(walk: Comparing, old: Node, new: Node) -> list[Change]:
    """The changes between two schemas of objects."""
    return [
        *_required(old, new),
        *_properties(walk, old, new),
        *_dependencies(walk, old, new),
        *_additional(walk, _others(old), _others(new), "additionalProperties", "ADDITIONAL_PROPERTIES"),
        *_unevaluated(walk, old, new, "unevaluatedProperties", "UNEVALUATED_PROPERTIES"),
        *_limits(old, new, OF_OBJECT),
    ]


def _others(node: Node) -> Node | None:
    """The schema of further properties; None: they are free."""
    found: Node | None = node.parts.get("additionalProperties")
    return None if found is not None and found.raw is True else found


def _needed(node: Node) -> set[str]:
    given = node.keyword("required")
    return set(given) if isinstance(given, list) else set()


def _required(old: Node, new: Node) -> list[Change]:
    found: list[Change] = []
    before, after = _needed(old), _needed(new)
    for key in old.parts["properties"]:
        other = new.parts["properties"].get(key)
        if other is None or (key in before) == (key in after):
            continue
        how = "REMOVED" if key in before else "WITH_DEFAULT_ADDED" if other.has_default else "ADDED"
        found.append((f"REQUIRED_ATTRIBUTE_{how}", ("required", key)))
    return found


def _properties(walk: Comparing, old: Node, new: Node) -> list[Change]:
    found: list[Change] = []
    olds, news = old.parts["properties"], new.parts["properties"]
    for key in {**olds, **news}:
        if key not in news:
            changes = _property_removed(walk, olds[key], new, key)
        elif key not in olds:
            changes = _property_added(walk, old, news[key], key, is_required=key in _needed(new))
        else:
            changes = walk.compare(olds[key], news[key])
        found += _below(("properties", key), changes)
    return found


def _property_removed(walk: Comparing, was: Node, new: Node, key: str) -> list[Change]:
    """The content model of the new schema decides."""
    if _is_open(new, "additionalProperties", "unevaluatedProperties") and not new.parts["patternProperties"]:
        return [("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", ())]
    covering = _covering_property(new, key)
    if covering is not None:
        return _covered(walk, walk.compare(was, covering), "PROPERTY_REMOVED")
    how = "PROPERTY_WITH_FALSE_REMOVED" if was.kind == FALSE else "PROPERTY_REMOVED"
    return [(f"{how}_FROM_CLOSED_CONTENT_MODEL", ())]


def _property_added(walk: Comparing, old: Node, now: Node, key: str, *, is_required: bool) -> list[Change]:
    """The content model of the old schema decides."""
    if _is_open(old, "additionalProperties", "unevaluatedProperties") and not old.parts["patternProperties"]:
        if now.kind == EMPTY:
            return [("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", ())]
        return [(f"{_added(now, is_required)}_ADDED_TO_OPEN_CONTENT_MODEL", ())]
    covering = _covering_property(old, key)
    found = [] if covering is None else _covered(walk, walk.compare(covering, now), "PROPERTY_ADDED")
    return [*found, (f"{_added(now, is_required)}_ADDED_TO_UNOPEN_CONTENT_MODEL", ())]


def _added(now: Node, is_required: bool) -> str:
    if not is_required:
        return "OPTIONAL_PROPERTY"
    return "REQUIRED_PROPERTY_WITH_DEFAULT" if now.has_default else "REQUIRED_PROPERTY"


def _covered(walk: Comparing, changes: list[Change], what: str) -> list[Change]:
    how = "IS_COVERED" if walk.fits(changes) else "NOT_COVERED"
    return [*changes, (f"{what}_{how}_BY_PARTIALLY_OPEN_CONTENT_MODEL", ())]


def _covering_property(node: Node, key: str) -> Node | None:
    """The schema that a partially open content model has for a property that it does not name."""
    for pattern, each in node.parts["patternProperties"].items():
        if _matches(pattern, key):
            found: Node = each
            return found
    return _covering(node, "additionalProperties", "unevaluatedProperties")


def _matches(pattern: str, key: str) -> bool:
    try:
        return re2.search(pattern, key) is not None
    except re2.error:  # re2 knows no look-around
        try:
            return re.search(pattern, key) is not None
        except re.error:
            return False


def _is_open(node: Node, further: str, unevaluated: str) -> bool:
    """Whether anything may stand beside what is named."""
    rest, others = node.parts.get(further), node.parts.get(unevaluated)
    return (rest is None or rest.raw is True) and (others is None or others.kind == EMPTY)


def _covering(node: Node, further: str, unevaluated: str) -> Node | None:
    """The schema of whatever is not named; None: nothing or anything may be there."""
    found: Node | None = node.parts.get(further)
    if found is not None and found.raw is not True:
        return None if found.raw is False else found
    found = node.parts.get(unevaluated)
    return None if found is None or found.kind in (FALSE, EMPTY) else found


def _additional(walk: Comparing, old: Node | None, new: Node | None, key: str, name: str) -> list[Change]:
    is_free_before, is_free_after = old is None or old.raw is not False, new is None or new.raw is not False
    if is_free_before != is_free_after:
        return [(f"{name}_{'ADDED' if is_free_after else 'REMOVED'}", (key,))]
    if not is_free_before or (old is None and new is None):
        return []
    if old is None or new is None:
        return [(f"{name}_{'NARROWED' if old is None else 'EXTENDED'}", (key,))]
    return _below((key,), walk.compare(old, new))


def _unevaluated(walk: Comparing, old: Node, new: Node, key: str, name: str) -> list[Change]:
    before, after = old.parts.get(key), new.parts.get(key)
    if before is None and after is None:
        return []
    was_closed, is_closed = before is not None and before.kind == FALSE, after is not None and after.kind == FALSE
    was_free, is_free = before is None or before.kind == EMPTY, after is None or after.kind == EMPTY
    if was_closed != is_closed:
        how = "ADDED" if was_closed else "REMOVED"
    elif before is None or (was_free and not is_free):
        how = "NARROWED"
    elif after is None or (is_free and not was_free):
        how = "EXTENDED"
    else:
        return _below((key,), walk.compare(before, after))
    return [(f"{name}_{how}", (key,))]


def _dependencies(walk: Comparing, old: Node, new: Node) -> list[Change]:
    found: list[Change] = []
    before, after = old.parts["dependentRequired"], new.parts["dependentRequired"]
    for key in {**before, **after}:
        how = _array_change(before.get(key), after.get(key))
        if how:
            found.append((f"DEPENDENCY_ARRAY_{how}", ("dependencies", key)))
    olds, news = old.parts["dependentSchemas"], new.parts["dependentSchemas"]
    for key in {**olds, **news}:
        if key in olds and key in news:
            found += _below(("dependencies", key), walk.compare(olds[key], news[key]))
        else:
            found.append((f"DEPENDENCY_SCHEMA_{'ADDED' if key in news else 'REMOVED'}", ("dependencies", key)))
    return found


def _array_change(before: set[Any] | None, after: set[Any] | None) -> str:
    if before is None or after is None:
        return "ADDED" if before is None else "REMOVED"
    if before == after:
        return ""
    return "EXTENDED" if before < after else "NARROWED" if after < before else "CHANGED"


# -- arrays


def compare_arrays(walk: Comparing, old: Node, new: Node) -> list[Change]:
    """The changes between two schemas of arrays."""
    found = _below(("items",), walk.compare(old.parts.get("items"), new.parts.get("items")))
    found += _first(walk, old, new)
    found += _additional(walk, _rest(old), _rest(new), "additionalItems", "ADDITIONAL_ITEMS")
    found += _unevaluated(walk, old, new, "unevaluatedItems", "UNEVALUATED_ITEMS")
    found += _limits(old, new, OF_ARRAY)
    before, after = old.keyword("uniqueItems") is True, new.keyword("uniqueItems") is True
    if before != after:
        found.append((f"UNIQUE_ITEMS_{'ADDED' if after else 'REMOVED'}", ("uniqueItems",)))
    return found


def _rest(node: Node) -> Node | None:
    found: Node | None = node.parts.get("rest")
    return None if found is not None and found.raw is True else found


def _first(walk: Comparing, old: Node, new: Node) -> list[Change]:
    """The items that have a schema each."""
    found: list[Change] = []
    olds, news = old.parts["first"], new.parts["first"]
    for index in range(max(len(olds), len(news))):
        if index < min(len(olds), len(news)):
            changes = walk.compare(olds[index], news[index])
        elif index < len(olds):
            changes = _item_removed(walk, olds[index], new)
        else:
            changes = _item_added(walk, old, news[index])
        found += _below((f"items/{index}",), changes)
    return found


def _item_removed(walk: Comparing, was: Node, new: Node) -> list[Change]:
    if _is_open(new, "rest", "unevaluatedItems"):
        return [("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", ())]
    covering = _covering(new, "rest", "unevaluatedItems")
    if covering is not None:
        return _covered(walk, walk.compare(was, covering), "ITEM_REMOVED")
    how = "ITEM_WITH_FALSE_REMOVED" if was.kind == FALSE else "ITEM_REMOVED"
    return [(f"{how}_FROM_CLOSED_CONTENT_MODEL", ())]


def _item_added(walk: Comparing, old: Node, now: Node) -> list[Change]:
    if _is_open(old, "rest", "unevaluatedItems"):
        how = "ITEM_WITH_EMPTY_SCHEMA_ADDED" if now.kind == EMPTY else "ITEM_ADDED"
        return [(f"{how}_TO_OPEN_CONTENT_MODEL", ())]
    covering = _covering(old, "rest", "unevaluatedItems")
    if covering is None:
        return [("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", ())]
    return _covered(walk, walk.compare(covering, now), "ITEM_ADDED")
