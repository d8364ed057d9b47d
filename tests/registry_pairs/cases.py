"""The pairs at each level, and what momus says of them; and of the pairs by which Confluent tests its own rules."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from judges import vectors
from pairs import FORMATS, LEVELS, Pair, pair

from broker.registry.formats import checker
from broker.registry.jobs import Checked, Job, SchemaFaultError, Source
from broker.shell.registry.protoc import compiled


class Case(NamedTuple):
    """A pair at a level, and what momus says of it."""

    number: int
    pair: Pair
    level: str
    found: Checked | None
    normalized: str
    fault: str


def judged(numbers: range) -> list[Case]:
    """All formats, all levels, on all processors."""
    rows = [(schema_type, number) for schema_type in FORMATS for number in numbers]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return list(chain.from_iterable(pool.map(_judged, rows, chunksize=20)))


def _judged(row: tuple[str, int]) -> list[Case]:
    schema_type, number = row
    made = pair(schema_type, number)
    old, new = Source(schema_type, made.old, (), 1), Source(schema_type, made.new)
    cases = []
    normalized = ""
    for level in LEVELS:
        try:
            found = checker.check(Job(new, previous=(old,), level=level), compiled)
            normalized = normalized or checker.check(Job(new, normalize=True), compiled).text
            cases.append(Case(number, made, level, found, normalized, ""))
        except SchemaFaultError as fault:
            cases.append(Case(number, made, level, None, "", str(fault)))
    return cases


def against_vectors(folder: Path) -> Iterator[tuple[str, str]]:
    """The pairs of Confluent's own tests: where each is from, and how the verdict differs; "": it does not."""
    for file, schema_type, row in vectors(folder):
        old, new = (_source(folder, schema_type, row, which) for which in ("original", "update"))
        told = {"verdict": row["compatible"], "changes": row["changes"]}
        try:
            found = checker.check(Job(new, previous=(old._replace(version=1),), level="BACKWARD"), compiled)
        except SchemaFaultError as fault:
            yield f"{file}: {row['description']}", f"{told}; momus refuses it: {fault}"
            continue
        named = [f"{each.kind} {each.path}" for each in found.differences]
        is_same = bool(named) != row["compatible"] and set(named) <= set(row["changes"])
        yield f"{file}: {row['description']}", "" if is_same else f"{told}; momus: {named}"


def _source(folder: Path, schema_type: str, row: dict[str, Any], which: str) -> Source:
    schema = row[f"{which}_schema"]
    if schema_type == "JSON":
        return Source("JSON", json.dumps(schema))

    def text(name: str) -> str:
        for place in ("protobuf-provider/src/test/resources", "protobuf-types/src/main/proto"):
            if (folder / place / name).exists():
                return (folder / place / name).read_text()
        return ""  # Google's own, which protoc brings

    rows = row.get(f"{which}_dependencies", ())
    needed = [(each["name"], each.get("dependency") or text(each["name"])) for each in rows]
    files = tuple((name, file) for name, file in needed if file)
    return Source("PROTOBUF", text(schema) if schema.endswith(".proto") else schema, files)
