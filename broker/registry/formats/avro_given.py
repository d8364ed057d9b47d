"""What Java's library takes and refuses of an Avro schema where Apache's `avro` for Python is of another mind.

`prepared` turns what Java takes and `avro` does not into what both do; `check_names` and `check_defaults` refuse what
Java refuses.
Source: Apache Avro's Schema.parse, validateName and isValidDefault in Java.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from avro.errors import AvroException
from avro.name import validate_basename

from broker.registry.formats.avro_text import NAMED, PRIMITIVES, full_name, space_of
from broker.registry.jobs import SchemaFaultError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Set

INT_BITS: Final = {"int": 31, "long": 63}
COMPLEX: Final = frozenset(("array", "map", "error_union", *NAMED))
NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")
SHOWN: Final = 200  # letters of a default, and of a type


def prepared(tree: Any, known: Set[str]) -> Any:
    """The JSON with names in the place of {"type": name} and of a definition that is given again, orders in lower case.

    known   the full names that its references define.
    """
    return _Preparation(known).of(tree, "")


class _Preparation:
    def __init__(self, known: Set[str]) -> None:
        self._known = set(known)
        self._defined: dict[str, Any] = {}

    def of(self, node: Any, space: str) -> Any:
        """A schema within a namespace."""
        if isinstance(node, list):
            return [self.of(each, space) for each in node]
        if not isinstance(node, dict) or not isinstance(node.get("type"), str):
            return node
        kind, made = node["type"], dict(node)
        if kind in NAMED:
            return self._named(node, made, space)
        for part in ("items", "values"):
            if kind in COMPLEX and part in made:
                made[part] = self.of(made[part], space)
        if kind in COMPLEX or kind in PRIMITIVES:
            return made
        return kind if full_name(kind, None, space) in self._known or kind in self._known else node

    def _named(self, node: dict[str, Any], made: dict[str, Any], space: str) -> Any:
        if not isinstance(node.get("name"), str):
            return node
        full = full_name(node["name"], node.get("namespace"), space)
        if self._defined.get(full) == node:
            return full
        self._known.add(full)
        self._defined[full] = node
        if isinstance(made.get("fields"), list):
            made["fields"] = [self._field(each, space_of(full)) for each in made["fields"]]
        return made

    def _field(self, field: Any, space: str) -> Any:
        if not isinstance(field, dict) or "type" not in field:
            return field
        made = {**field, "type": self.of(field["type"], space)}
        if isinstance(field.get("order"), str):
            made["order"] = field["order"].lower()
        return made


def check_names(tree: Any) -> None:
    """Refuse names of types, fields, symbols and aliases that Avro does not allow, and an enum's default that is none.

    Errors: SchemaFaultError.
    """
    for node in _nodes(tree):
        if node["type"] == "enum" and node.get("default") not in (None, *(node.get("symbols") or ())):
            symbols = ", ".join(map(str, node["symbols"]))
            raise SchemaFaultError(f"The Enum Default: {node['default']} is not in the enum symbol set: [{symbols}]")
        names = [node.get("name"), *(node.get("aliases") or ()), *(node.get("symbols") or ())]
        for field in node.get("fields") or ():
            names += [field.get("name"), *(field.get("aliases") or ())]
        for name in names:
            if isinstance(name, str):
                _check_name(name.rpartition(".")[2])


def _check_name(name: str) -> None:
    try:
        validate_basename(name)
    except AvroException as error:
        raise SchemaFaultError(str(error)) from None


def _nodes(tree: Any) -> Iterable[dict[str, Any]]:
    """The definitions in a schema."""
    if isinstance(tree, list):
        for each in tree:
            yield from _nodes(each)
    elif isinstance(tree, dict):
        if tree.get("type") in NAMED:
            yield tree
        for field in tree.get("fields") or ():
            yield from _nodes(field.get("type"))
        for part in ("items", "values", "type"):
            if not isinstance(tree.get(part), str):
                yield from _nodes(tree.get(part))


def check_defaults(schema: Any) -> None:
    """Refuse defaults that are no values of their field, of a schema as `avro` has it. Errors: SchemaFaultError."""
    seen: set[int] = set()
    left = [schema]
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        left += [part for part in (getattr(node, name, None) for name in ("items", "values")) if part is not None]
        left += getattr(node, "schemas", ())
        for field in getattr(node, "fields", ()):
            left.append(field.type)
            if field.has_default and not _fits(field.default, field.type):
                default, kind = json.dumps(field.default, ensure_ascii=False), json.dumps(field.type.to_json())
                raise SchemaFaultError(
                    f"Invalid default for field {field.name}: {default:.{SHOWN}} not a {kind:.{SHOWN}}"
                )


def _fits(value: Any, schema: Any) -> bool:
    fits = _FITS.get(schema.type)
    return fits is None or fits(value, schema)


def _is_whole(value: Any, schema: Any) -> bool:
    limit = 1 << INT_BITS[schema.type]
    return type(value) is int and -limit <= value < limit


def _is_record(value: Any, schema: Any) -> bool:
    if not isinstance(value, dict):
        return False
    rows = ((field, value.get(field.name, field.default if field.has_default else ...)) for field in schema.fields)
    return all(each is not ... and _fits(each, field.type) for field, each in rows)


def _is_map(value: Any, schema: Any) -> bool:
    return isinstance(value, dict) and all(_fits(each, schema.values) for each in value.values())


_FITS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "null": lambda value, schema: value is None,
    "boolean": lambda value, schema: isinstance(value, bool),
    **dict.fromkeys(("int", "long"), _is_whole),
    **dict.fromkeys(("float", "double"), lambda value, schema: type(value) in (int, float) or value in NO_NUMBERS),
    **dict.fromkeys(("string", "bytes", "enum", "fixed"), lambda value, schema: isinstance(value, str)),
    "array": lambda value, schema: isinstance(value, list) and all(_fits(each, schema.items) for each in value),
    "map": _is_map,
    **dict.fromkeys(("record", "error"), _is_record),
    "union": lambda value, schema: any(_fits(value, each) for each in schema.schemas),
}
