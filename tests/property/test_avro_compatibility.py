"""Our rules of Avro's schema resolution have the verdicts of those in Apache's own library."""

from __future__ import annotations

import json

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.name import Names
from avro.schema import make_avsc_object
from hypothesis import given
from hypothesis import strategies as st

from broker.registry.formats.avro_rules import differences

PRIMITIVES = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
NAMES = st.sampled_from(["A", "B"])


def compound(inner):
    """A schema made of others; named types get their names by `named`."""
    fields = st.lists(st.tuples(st.sampled_from("abc"), inner, st.booleans()), max_size=3, unique_by=lambda row: row[0])
    return st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda values: {"type": "map", "values": values}, inner),
        st.builds(lambda name, size: {"type": "fixed", "name": name, "size": size}, NAMES, st.integers(1, 2)),
        st.builds(
            lambda name, symbols: {"type": "enum", "name": name, "symbols": sorted(symbols)},
            NAMES,
            st.sets(st.sampled_from("XYZ"), min_size=1),
        ),
        st.builds(lambda name, rows: {"type": "record", "name": name, "fields": rows}, NAMES, fields),
        st.lists(PRIMITIVES, min_size=1, max_size=3, unique=True),
    )


SCHEMAS = st.recursive(PRIMITIVES, compound, max_leaves=6)


def named(node, at="r"):
    """The same with a name for each definition, the same one at the same place: a name may be defined once alone."""
    if isinstance(node, list):
        return [named(each, f"{at}{index}") for index, each in enumerate(node)]
    if not isinstance(node, dict):
        return node
    made = dict(node)
    if "name" in made:
        made["name"] = f"{at}{made['name']}"
    if "fields" in made:
        made["fields"] = [
            {"name": name, "type": named(kind, at + name), **({"default": None} if has_default else {})}
            for name, kind, has_default in node["fields"]
        ]
    for part in ("items", "values"):
        if part in made:
            made[part] = named(made[part], at + part[0])
    return made


def verdicts(reader, writer):
    """Whether the first reads the second: by our rules, and by Apache's."""
    mine, other = (make_avsc_object(json.loads(json.dumps(each)), Names()) for each in (reader, writer))
    theirs = ReaderWriterCompatibilityChecker().get_compatibility(mine, other).compatibility
    return not differences(mine, other), theirs is SchemaCompatibilityType.compatible


SIMPLE = [
    *("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
    *(["null", "int"], ["string"], ["long", "double"]),
    *({"type": "fixed", "name": name, "size": size} for name, size in (("A", 1), ("A", 2), ("B", 1))),
    *({"type": "enum", "name": name, "symbols": symbols} for name, symbols in (("A", ["X"]), ("A", ["X", "Y"]))),
    *({"type": kind, part: "int"} for kind, part in (("array", "items"), ("map", "values"))),
    {"type": "record", "name": "A", "fields": []},
    {"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}]},
    {"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "long"], "default": None}]},
]


def test_verdict_on_each_pair_of_simple_schemas_is_that_of_apaches_library():
    wrong = [(reader, writer) for reader in SIMPLE for writer in SIMPLE if len(set(verdicts(reader, writer))) > 1]
    assert wrong == []


@given(SCHEMAS, SCHEMAS)
def test_verdict_is_that_of_apaches_library(reader, writer):
    mine, theirs = verdicts(named(reader), named(writer))
    assert mine is theirs
