"""JSON Schemas: checked by `jsonschema` against the meta-schema of their draft; `referencing` resolves `$ref`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jsonschema import Draft7Validator
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for
from jsonschema_specifications import REGISTRY

from broker.registry.formats.json_changes import COMPATIBLE, COMPATIBLE_LENIENT
from broker.registry.formats.json_model import model
from broker.registry.formats.json_patterns import check_patterns
from broker.registry.formats.json_rules import differences
from broker.registry.formats.json_tree import tree_of
from broker.registry.formats.tags import tagged_json, within_json
from broker.registry.jobs import SchemaFaultError

if TYPE_CHECKING:
    from broker.registry.formats.checker import Protoc
    from broker.registry.formats.finding import Finding
    from broker.registry.formats.json_model import Node
    from broker.registry.jobs import Job, Source

SHOWN: Final = 500  # letters of what is wrong


class Parsed(NamedTuple):
    """A schema, as JSON and as a graph; None: it may be none, and is compared with nothing."""

    tree: Any
    node: Node | None


def parse(source: Source, protoc: Protoc, job: Job | None = None) -> Parsed:
    """Errors: SchemaFaultError."""
    references = [(name, tree_of(text, name)) for name, text in source.references]
    tree = tree_of(source.schema, "", is_new=source.version == 0)
    if job is not None and job.is_lax:
        return Parsed(tree, None)
    if not isinstance(tree, dict | bool):
        raise SchemaFaultError(f"{str(tree)[:SHOWN]!r} is no schema: it is neither an object nor true or false")
    validator = validator_for(tree, default=Draft7Validator)
    fault = best_match(validator(validator.META_SCHEMA).iter_errors(tree))
    if fault is not None:
        raise SchemaFaultError(f"at {fault.json_path}: {fault.message[:SHOWN]}")
    check_patterns(tree)
    if job is not None and job.validates and isinstance(tree, dict):
        bad = next((name for name in tree.get("properties", {}) if name.startswith("$$")), None)
        if bad is not None:
            raise SchemaFaultError(f"Field names cannot start with $$ prefix: {bad}")
    return Parsed(tree, model(tree, references, REGISTRY))


def text(parsed: Parsed, form: str, normalize: bool) -> str:
    """Without spaces, in the order that was given; normalized: sorted.

    There are no other forms: the word is ignored, as Confluent's registry ignores it.
    """
    return json.dumps(parsed.tree, ensure_ascii=False, separators=(",", ":"), sort_keys=normalize)


tagged, tags_within = tagged_json, within_json


def fields(parsed: Parsed) -> list[str]:
    """The names of the fields of what is outermost."""
    return list(parsed.tree.get("properties", ())) if isinstance(parsed.tree, dict) else []


def compare(reader: Parsed, writer: Parsed, *, is_lenient: bool = False) -> list[Finding]:
    """Why the first does not accept all that the second does."""
    assert reader.node is not None
    assert writer.node is not None
    return differences(reader.node, writer.node, COMPATIBLE_LENIENT if is_lenient else COMPATIBLE)
