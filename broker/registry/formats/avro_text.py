"""How an Avro schema is written: as Java's library does, and in Confluent's normalized form.

Both take the JSON of a schema that has been parsed, and the full names that its references define.
Source: Apache Avro's specification, "Names", "Parsing Canonical Form"; what Schema.toString() of Java writes; for the
        normalized form Confluent's AvroSchemaUtils (attributes in one order; doc, aliases, defaults stay).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
NAMED: Final = frozenset(("record", "error", "enum", "fixed"))
RESERVED: Final = frozenset(
    ("aliases", "doc", "fields", "items", "name", "namespace", "size", "symbols", "type", "values")
)
OF_FIELD: Final = frozenset(("aliases", "default", "doc", "name", "order", "type"))


def canonical(tree: Any, known: Set[str]) -> str:
    """As Java's Schema.toString() writes it."""
    return _dump(_Canonical(known).write(tree, ""))


def normalized(tree: Any, known: Set[str]) -> str:
    """As Confluent's registry stores it where "normalize" is set: normalized, parsed again, and written by Java."""
    return _dump(_Canonical(known).write(_Normalized(known).write(tree, ""), ""))


def resolved(tree: Any, known: Set[str], references: Iterable[Any]) -> str:
    """As Java writes it without the schemas that it refers to: what they define stands where it is named first."""
    definitions: dict[str, Any] = {}
    for each in references:
        _define(each, "", definitions)
    return _dump(_Resolved(known, definitions).write(tree, ""))


def _define(node: Any, space: str, found: dict[str, Any]) -> None:
    """Find the definitions in a schema, by their full names."""
    if isinstance(node, list):
        for each in node:
            _define(each, space, found)
    if not isinstance(node, dict):
        return
    if node["type"] in NAMED:
        full = full_name(node["name"], node.get("namespace"), space)
        found[full] = {**node, "name": full}
        space = space_of(full)
    for part in (*(each["type"] for each in node.get("fields") or ()), node.get("items"), node.get("values")):
        _define(part, space, found)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def full_name(name: str, given_space: object, space: str) -> str:
    """The full name of a definition within a namespace."""
    if "." in name:
        return name
    own = given_space if isinstance(given_space, str) else space
    return f"{own}.{name}" if own else name


def space_of(full: str) -> str:
    """The namespace of a full name."""
    return full.rpartition(".")[0]


class _Canonical:
    """One writing; `known`: what has been defined so far."""

    def __init__(self, known: Set[str]) -> None:
        self._known = set(known)

    def write(self, node: Any, space: str) -> Any:
        """A schema within a namespace."""
        if isinstance(node, str):
            return self._name(node, space)
        if isinstance(node, list):
            return [self.write(each, space) for each in node]
        kind = node["type"]
        if not isinstance(kind, str):  # {"type": {...}}
            return self.write(kind, space)
        if kind in NAMED:
            return self._named(node, kind, space)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            return {"type": kind, part: self.write(node[part], space), **_rest(node)}
        if kind in PRIMITIVES:
            rest = _rest(node)
            return {"type": kind, **rest} if rest else kind
        return self._name(kind, space)

    def _name(self, name: str, space: str) -> Any:
        """What was defined before, or a primitive type."""
        full = self._resolve(name, space)
        if full in PRIMITIVES:
            return full
        short = full.rpartition(".")[2]
        return short if space_of(full) == space and short not in PRIMITIVES else full

    def _resolve(self, name: str, space: str) -> str:
        if name in PRIMITIVES or "." in name:
            return name
        full = full_name(name, None, space)
        return full if full in self._known else name

    def _named(self, node: dict[str, Any], kind: str, space: str) -> dict[str, Any]:
        full = full_name(node["name"], node.get("namespace"), space)
        own = space_of(full)
        self._known.add(full)
        made: dict[str, Any] = {"type": kind, "name": full.rpartition(".")[2]}
        if own != space:
            made["namespace"] = own
        if isinstance(node.get("doc"), str):
            made["doc"] = node["doc"]
        if kind in ("record", "error"):
            made["fields"] = [self._field(each, own) for each in node["fields"]]
            made |= _rest(node)
        elif kind == "enum":
            made["symbols"] = node["symbols"]
            if "default" in node:
                made["default"] = node["default"]
            made |= _rest(node, "default")
        else:
            made["size"] = node["size"]
            made |= _rest(node)
        if node.get("aliases"):
            made["aliases"] = [_short(each, own) for each in node["aliases"]]
        return made

    def _field(self, field: dict[str, Any], space: str) -> dict[str, Any]:
        made = {"name": field["name"], "type": self.write(field["type"], space)}
        if isinstance(field.get("doc"), str):
            made["doc"] = field["doc"]
        if "default" in field:
            made["default"] = field["default"]
        order = field.get("order")
        if isinstance(order, str) and order.lower() != "ascending":
            made["order"] = order.lower()
        if field.get("aliases"):
            made["aliases"] = field["aliases"]
        return made | {key: value for key, value in field.items() if key not in OF_FIELD}


class _Resolved(_Canonical):
    """With the definitions of references; `definitions`: by full name."""

    def __init__(self, known: Set[str], definitions: dict[str, Any]) -> None:
        super().__init__(known)
        self._left = dict(definitions)

    def _name(self, name: str, space: str) -> Any:
        node = self._left.pop(self._resolve(name, space), None)
        return super()._name(name, space) if node is None else self._named(node, node["type"], space)

    def _named(self, node: dict[str, Any], kind: str, space: str) -> dict[str, Any]:
        self._left.pop(full_name(node["name"], node.get("namespace"), space), None)
        return super()._named(node, kind, space)


class _Normalized(_Canonical):
    """Attributes in one order, names in full."""

    def write(self, node: Any, space: str) -> Any:
        """A schema within a namespace."""
        if isinstance(node, dict) and isinstance(node["type"], str):
            kind = node["type"]
            if kind in ("array", "map"):
                part = "items" if kind == "array" else "values"
                return {"type": kind, part: self.write(node[part], space), **_sorted(_rest(node))}
            if kind in PRIMITIVES:
                rest = _sorted(_rest(node))
                return {"type": kind, **rest} if rest else kind
        return super().write(node, space)

    def _name(self, name: str, space: str) -> str:
        return self._resolve(name, space)

    def _named(self, node: dict[str, Any], kind: str, space: str) -> dict[str, Any]:
        full = full_name(node["name"], node.get("namespace"), space)
        own = space_of(full)
        self._known.add(full)
        made: dict[str, Any] = {"name": full, "type": "record" if kind == "error" else kind}
        rest = _rest(node)
        if kind == "enum":
            made["symbols"] = node["symbols"]
            rest = _rest(node, "default")
        elif kind == "fixed":
            made["size"] = node["size"]
        else:
            made["fields"] = [self._field(each, own) for each in node["fields"]]
        logical = _sorted({key: rest.pop(key) for key in ("logicalType", "precision", "scale") if key in rest})
        made |= logical
        if isinstance(node.get("doc"), str) and node["doc"]:
            made["doc"] = node["doc"]
        if node.get("aliases"):
            made["aliases"] = sorted(full_name(each, None, own) for each in node["aliases"])
        if kind == "enum" and node.get("default") is not None:
            made["default"] = node["default"]
        return made | _sorted(rest)

    def _field(self, field: dict[str, Any], space: str) -> dict[str, Any]:
        order = field.get("order")
        made = {"name": field["name"], "type": self.write(field["type"], space)}
        made["order"] = order.lower() if isinstance(order, str) else "ascending"
        if isinstance(field.get("doc"), str):
            made["doc"] = field["doc"]
        if field.get("aliases"):
            made["aliases"] = sorted(field["aliases"])
        if "default" in field:
            made["default"] = _ordered(field["default"])
        return made | _sorted({key: value for key, value in field.items() if key not in OF_FIELD})


def _rest(node: dict[str, Any], *more: str) -> dict[str, Any]:
    """The attributes that Avro does not know."""
    return {key: value for key, value in node.items() if key not in RESERVED and key not in more}


def _sorted(given: dict[str, Any]) -> dict[str, Any]:
    """By name; a logical type with its precision and scale first."""
    first = [key for key in ("logicalType", "precision", "scale") if key in given]
    return {key: _ordered(given[key]) for key in [*first, *sorted(given.keys() - set(first))]}


def _ordered(value: Any) -> Any:
    """JSON with the names of its objects sorted."""
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(each) for each in value] if isinstance(value, list) else value


def _short(alias: str, space: str) -> str:
    """An alias as it is written within the namespace of its definition."""
    return alias.rpartition(".")[2] if "." in alias and space_of(alias) == space else alias
