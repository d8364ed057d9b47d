"""Avro schemas: parsed by Apache's `avro`, written as its Java library writes them.

The two forms are made of the JSON that was given, which `avro` has found to be a schema: its own writing would lose the
order that Java gives to attributes, and namespaces that repeat.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from avro.errors import AvroException
from avro.name import Names
from avro.schema import make_avsc_object

from broker.registry.formats.avro_given import check_defaults, check_names, prepared
from broker.registry.formats.avro_rules import differences
from broker.registry.formats.avro_text import canonical, normalized, resolved
from broker.registry.formats.json_tree import in_reference, tree_of
from broker.registry.formats.tags import tagged_avro, within_avro
from broker.registry.jobs import SchemaFaultError

if TYPE_CHECKING:
    from broker.registry.formats.checker import Protoc
    from broker.registry.formats.finding import Finding
    from broker.registry.jobs import Job, Source

ERROR_LETTERS: Final = 2000
UNDEFINED: Final = re.compile(r"(?:Could not make an Avro Schema object from|Undefined type:) ([A-Za-z_][\w.]*)$")


class Parsed(NamedTuple):
    """A schema, as JSON and as `avro` sees it; its references likewise, and the names that they define."""

    tree: Any
    schema: Any
    known: frozenset[str]
    references: tuple[Any, ...]


def parse(source: Source, protoc: Protoc, job: Job | None = None) -> Parsed:
    """A schema that is stored already may have names that Avro's standard does not allow. Errors: SchemaFaultError."""
    is_new = job is not None and job.is_new
    names = Names(validate_names=is_new)
    references = []
    for name, text in source.references:
        references.append(prepared(tree_of(text, name), frozenset(names.names)))
        _made(references[-1], names, name)
    known = frozenset(names.names)
    tree = prepared(tree_of(source.schema, "", is_new=source.version == 0), known)
    schema = _made(tree, names, "")
    if source.version == 0:
        check_names(tree)
    if is_new:
        check_defaults(schema)
    return Parsed(tree, schema, known, tuple(references))


def text(parsed: Parsed, form: str, normalize: bool) -> str:
    """The canonical or the normalized form, or "resolved"; Java passes over the names of others."""
    if form == "resolved":
        return resolved(parsed.tree, parsed.known, parsed.references)
    return (normalized if normalize else canonical)(parsed.tree, parsed.known)


tagged, tags_within = tagged_avro, within_avro


def fields(parsed: Parsed) -> list[str]:
    """The names of the fields of what is outermost."""
    tree = parsed.tree
    return [each["name"] for each in tree.get("fields") or ()] if isinstance(tree, dict) else []


def compare(reader: Parsed, writer: Parsed, *, is_lenient: bool = False) -> list[Finding]:
    """Why the first cannot read what the second has written."""
    return differences(reader.schema, writer.schema)


def _made(tree: Any, names: Names, name: str) -> Any:
    """Errors: SchemaFaultError."""
    names.default_namespace = None
    if isinstance(tree, str) and names.has_name(tree):
        return names.get_name(tree)
    try:
        return make_avsc_object(tree, names, names.validate_names, names.validate_names)
    except AvroException as error:
        found = UNDEFINED.search(str(error))
        why = f"Undefined schema: {found[1]} ({error})" if found else str(error)  # as Java says it, and where
        raise SchemaFaultError(f"{in_reference(name)}{why}"[:ERROR_LETTERS]) from None
    except (TypeError, KeyError, AttributeError) as error:  # `avro` expects some types of JSON without looking
        raise SchemaFaultError(f"{in_reference(name)}it is no Avro schema ({error})"[:ERROR_LETTERS]) from None
