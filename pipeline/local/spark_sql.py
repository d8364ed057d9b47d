"""Conditions and types in Spark's words as DuckDB's: `group is not null`, `array<struct<topicId: string>>`."""

from __future__ import annotations

import json
import re
from typing import Any, Final

# Words of conditions that are no columns.
_WORDS: Final = frozenset({"and", "or", "not", "is", "null", "in", "like", "true", "false"})
_TOKEN: Final = re.compile(r"'[^']*'|`[^`]+`|[A-Za-z_][\w.]*|.", re.DOTALL)
_TYPES: Final = {
    "string": "VARCHAR", "bigint": "BIGINT", "long": "BIGINT", "int": "INTEGER", "smallint": "SMALLINT",
    "double": "DOUBLE", "boolean": "BOOLEAN", "timestamp": "TIMESTAMP", "binary": "BLOB", "date": "DATE",
}  # fmt: skip  # several to a line


def quoted(name: str) -> str:
    """A column's name, `a`, or that of a field in it, `a.b`, as DuckDB's SQL; every part may be a word of SQL."""
    return ".".join('"' + part.strip("`").replace('"', '""') + '"' for part in name.split("."))


def condition(text: str) -> str:
    """A condition in Spark's SQL as DuckDB's: every word that is neither a keyword nor a function is a column."""
    tokens = _TOKEN.findall(text)
    made = []
    for at, token in enumerate(tokens):
        is_name = token[0] == "`" or token[0].isalpha() or token[0] == "_"
        is_call = at + 1 < len(tokens) and tokens[at + 1] == "("
        made.append(quoted(token) if is_name and not is_call and token.lower() not in _WORDS else token)
    return "".join(made)


def type_of(name: str) -> str:
    """A simple type. Errors: KeyError: there is no such type."""
    return _TYPES[name.strip().lower()]


def fields_of(text: str) -> list[tuple[str, str]]:
    """The names and types of `a string, b array<int>` or `a: string, b: int`."""
    found = []
    for part in _split(text):
        name, _, kind = part.strip().replace(":", " ", 1).partition(" ")
        found.append((name.strip("`"), kind.strip()))
    return found


def duck_type(text: str) -> str:
    """A type, simple or not, as DuckDB's."""
    inner = _inside(text)
    if inner is None:
        return type_of(text)
    if text.strip().startswith("array"):
        return f"{duck_type(inner)}[]"
    return "STRUCT(" + ", ".join(f"{quoted(name)} {duck_type(kind)}" for name, kind in fields_of(inner)) + ")"


def json_structure(text: str) -> str:
    """A type as the structure that DuckDB's from_json takes; a list of fields is a struct."""
    return json.dumps(_structure(text))


def _structure(text: str) -> Any:
    inner = _inside(text)
    if text.strip().startswith("array") and inner is not None:
        return [_structure(inner)]
    if inner is None and " " not in text.strip() and ":" not in text:
        return type_of(text)
    return {name: _structure(kind) for name, kind in fields_of(text if inner is None else inner)}


def _inside(text: str) -> str | None:
    found = re.fullmatch(r"\s*(?:array|struct)<(.*)>\s*", text, re.DOTALL)
    return found[1] if found else None


def _split(text: str) -> list[str]:
    """The parts of a list, by its commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += {"<": 1, ">": -1}.get(char, 0)
        if char == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
