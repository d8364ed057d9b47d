"""Random JSON Schemas, of draft 7 and of 2020-12, and changes to them."""

from __future__ import annotations

import random
from typing import Any

MODERN = "https://json-schema.org/draft/2020-12/schema"
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
SIZES = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}
SUMS = ("anyOf", "oneOf", "allOf")
RARE = ("const", "not", "tuple", "typed enum", "types")  # by draw


def json_schema(draw: random.Random) -> Any:
    """An object's schema."""
    made = _object(draw)
    if draw.random() < 0.25:
        made["$schema"] = MODERN
        _modernise(made)
    return made


def _modernise(schema: Any) -> None:
    """Write what 2020-12 has other words for in these."""
    for place in _places(schema):
        if isinstance(place.get("items"), list):
            place["prefixItems"] = place.pop("items")
            if "additionalItems" in place:
                place["items"] = place.pop("additionalItems")
        if "dependencies" in place:
            place["dependentRequired"] = place.pop("dependencies")


def _type(draw: random.Random, depth: int) -> Any:
    plain = ("string", "number", "integer", "boolean", "null", "enum")
    kind = draw.choice((*plain, *("object", "array", *SUMS) * (depth < 2)))
    if draw.random() < 0.15:
        kind = draw.choice(RARE)
    if kind == "object":
        return _object(draw, depth + 1)
    if kind == "array":
        return _array(draw, depth)
    if kind in SUMS:
        return {kind: [_type(draw, 2) for _ in range(draw.randrange(1, 4))]}
    if kind == "tuple":
        made = {"type": "array", "items": [_type(draw, 2) for _ in range(draw.randrange(1, 3))]}
        if draw.random() < 0.5:
            made["additionalItems"] = draw.choice((False, True, {"type": "string"}))
        return made
    named: dict[str, Any] = {
        "enum": {"enum": ["a", "b", "c"][: draw.randrange(1, 4)]},
        "typed enum": {"type": "string", "enum": ["a", "b", "c"][: draw.randrange(1, 4)]},
        "const": {"const": draw.choice(("a", 1))},
        "not": {"not": {"type": draw.choice(("string", "integer", "null"))}},
        "types": {"type": draw.sample(["string", "null", "integer", "boolean"], 2)},
    }
    made = named.get(kind) or {"type": kind}
    if kind == "string":
        made |= _some(draw, SIZES["string"])
        if draw.random() < 0.15:
            made["pattern"] = "^a"
    if kind in ("number", "integer"):
        made |= _some(draw, BOUNDS)
    if draw.random() < 0.1:
        made["title"] = draw.choice(("t", "u"))
    return made


def _array(draw: random.Random, depth: int) -> Any:
    made = {"type": "array", "items": _type(draw, depth + 1), **_some(draw, SIZES["array"])}
    if draw.random() < 0.15:
        made["uniqueItems"] = True
    return made


def _some(draw: random.Random, words: tuple[str, ...]) -> dict[str, Any]:
    return {word: draw.randrange(1, 6) for word in words if draw.random() < 0.2}


def _object(draw: random.Random, depth: int = 0) -> Any:
    names = [f"p{number}" for number in range(draw.randrange(1, 4))]
    made: dict[str, Any] = {"type": "object", "properties": {name: _type(draw, depth + 1) for name in names}}
    if draw.random() < 0.4:
        made["required"] = draw.sample(names, draw.randrange(1, len(names) + 1))
    if draw.random() < 0.5:
        made["additionalProperties"] = draw.choice((True, False, False, {"type": "string"}))
    if draw.random() < 0.15:
        made["maxProperties"] = draw.randrange(1, 6)
    if draw.random() < 0.12:
        made["patternProperties"] = {draw.choice(("^p", "^q", "1$")): _type(draw, 2)}
    if draw.random() < 0.08:
        made["dependencies"] = {names[0]: draw.sample(["p0", "p1", "q1"], draw.randrange(1, 3))}
    return made


def _places(schema: Any) -> list[dict[str, Any]]:
    """The schemas in a schema."""
    found = []
    if isinstance(schema, dict):
        found.append(schema)
        for name, each in schema.items():
            if name in (*SUMS, "prefixItems") or (name == "items" and isinstance(each, list)):
                for one in each:
                    found += _places(one)
            elif name in ("properties", "patternProperties"):
                for one in each.values():
                    found += _places(one)
            elif name in ("items", "additionalProperties", "additionalItems", "not"):
                found += _places(each)
    return found


def json_change(draw: random.Random, schema: Any) -> None:
    """Change something."""
    place, is_modern = draw.choice(_places(schema)), "$schema" in schema
    _change(draw, place)
    if is_modern:
        _modernise(schema)


def _change(draw: random.Random, place: dict[str, Any]) -> None:
    kind = place.get("type")
    if kind == "object":
        _change_object(draw, place)
    elif "enum" in place:
        place["enum"] = ["a", "b", "c", "d"][: draw.randrange(1, 5)]
    elif "const" in place:
        place["const"] = draw.choice(("a", 1, 2))
    elif any(word in place for word in SUMS):
        word = next(word for word in SUMS if word in place)
        if draw.random() < 0.2:
            place[draw.choice(SUMS)] = place.pop(word)
        elif draw.random() < 0.5 and len(place[word]) > 1:
            place[word].pop()
        else:
            place[word].append(_type(draw, 2))
    elif kind == "array":
        _change_array(draw, place)
    elif kind == "string":
        place[draw.choice(SIZES["string"])] = draw.randrange(1, 6)
    elif kind in ("number", "integer"):
        if draw.random() < 0.3:
            place["type"] = "number" if kind == "integer" else "integer"
        else:
            place[draw.choice(BOUNDS)] = draw.randrange(1, 6)
    elif isinstance(kind, list):
        place["type"] = draw.sample(["string", "null", "integer", "boolean"], draw.randrange(1, 4))
    elif kind in ("boolean", "null"):
        place["type"] = draw.choice(("boolean", "null", "string"))


def _change_object(draw: random.Random, place: dict[str, Any]) -> None:
    properties = place.setdefault("properties", {})
    deed = draw.choice(("add", "drop", "require", "open", "change", "size", "pattern", "default"))
    if deed == "add":
        name = f"q{draw.randrange(5)}"
        properties[name] = draw.choice((_type(draw, 2), _type(draw, 2), True, False, {}))
        if draw.random() < 0.3:
            place["required"] = sorted({*place.get("required", ()), name})
    elif deed == "drop" and properties:
        del properties[draw.choice(sorted(properties))]
    elif deed == "require" and properties:
        known = set(place.get("required", ())) ^ {draw.choice(sorted(properties))}
        place["required"] = sorted(known)
        if not known:
            del place["required"]
    elif deed == "open":
        place["additionalProperties"] = draw.choice((True, False, {"type": "string"}, {"type": "integer"}))
    elif deed == "change" and properties:
        properties[draw.choice(sorted(properties))] = _type(draw, 2)
    elif deed == "size":
        place[draw.choice(("maxProperties", "minProperties"))] = draw.randrange(1, 6)
    elif deed == "pattern":
        place["patternProperties"] = {draw.choice(("^p", "^q", "1$")): _type(draw, 2)}
    elif deed == "default" and properties:
        one = properties[draw.choice(sorted(properties))]
        if isinstance(one, dict):
            one["default"] = None


def _change_array(draw: random.Random, place: dict[str, Any]) -> None:
    deed = draw.choice(("items", "size", "unique", "more", "rest"))
    first = next((place[word] for word in ("items", "prefixItems") if isinstance(place.get(word), list)), None)
    if deed == "size":
        place[draw.choice(SIZES["array"])] = draw.randrange(1, 6)
    elif deed == "unique":
        place["uniqueItems"] = not place.get("uniqueItems", False)
    elif deed == "more" and first is not None:
        first.append(_type(draw, 2))
    elif deed == "rest" and first is not None:
        word = "items" if "prefixItems" in place else "additionalItems"
        place[word] = draw.choice((False, True, {"type": "string"}))
    elif deed == "items" and first is None:
        place["items"] = _type(draw, 2)
