"""Holds values against the JSON Schemas of /openapi.json, as far as that uses them; a part of no test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TYPES = {"integer": int, "string": str, "boolean": bool, "number": (int, float), "null": type(None)}


def fits(value: Any, schema: dict[str, Any], described: dict[str, Any] | None = None, *, strict: bool = True) -> bool:
    """Whether a value is what a schema says. `described`: the document that its references are in.

    strict   an object has no fields but those that are named, also where the schema would let it.
    """
    if "$ref" in schema:
        assert described is not None
        found: Any = described
        for word in schema["$ref"].removeprefix("#/").split("/"):
            found = found[word]
        return fits(value, found, described, strict=strict)
    if "anyOf" in schema:
        return any(fits(value, each, described, strict=strict) for each in schema["anyOf"])
    kind = schema["type"]
    if isinstance(kind, list):
        return any(fits(value, {**schema, "type": each}, described, strict=strict) for each in kind)
    if value not in schema.get("enum", (value,)):
        return False
    if kind == "array":
        items = schema.get("items")
        return isinstance(value, list) and (
            items is None or all(fits(item, items, described, strict=strict) for item in value)
        )
    if kind == "object":
        return isinstance(value, dict) and _fields_fit(value, schema, described, strict)
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _fields_fit(value: dict[str, Any], schema: dict[str, Any], described: Any, strict: bool) -> bool:
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", not (strict and known))
    if not set(schema.get("required", ())) <= value.keys():
        return False
    return all(
        fits(item, known[name], described, strict=strict)
        if name in known
        else others is True or (bool(others) and fits(item, others, described, strict=strict))
        for name, item in value.items()
    )


def unfilled(values: list[Any], schema: dict[str, Any], described: dict[str, Any], where: str = "") -> Iterator[str]:
    """The lists, and the fields that may be left out, that none of these values fills: nothing is known of them."""
    while "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        kept = [each for each in schema["anyOf"] if each != {"type": "null"}]
        values = [each for each in values if each is not None]
        schema = kept[0] if len(kept) == 1 else {}
    if schema.get("type") == "array":
        items = [item for each in values for item in each]
        if not items:
            yield where
        else:
            yield from unfilled(items, schema.get("items", {}), described, f"{where}[]")
    for name, field in schema.get("properties", {}).items():
        found = [each[name] for each in values if name in each]
        if not found:
            yield f"{where}.{name}"
        else:
            yield from unfilled(found, field, described, f"{where}.{name}")
