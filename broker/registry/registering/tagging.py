"""Tags within a schema: read from a request, and decided on where a request changes those of a version.

A tag is kept in the schema itself: as the property "confluent:tags" of a record or field in Avro and JSON Schema, in
confluent.message_meta and confluent.field_meta in Protobuf; what has other tags is another version.
Source: Confluent's TagSchemaRequest and AbstractSchemaRegistry.modifySchemaTags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.registry import errors
from broker.registry.errors import RegistryError
from broker.registry.jobs import Tag
from broker.registry.registering.completion import CONFLUENT_VERSION, merged_metadata
from broker.registry.requests import LATEST, Given, metadata_of, subject_of, version_of_path
from broker.registry.rules import merged_rules, rules_of, without_rules
from broker.registry.versions import Content

if TYPE_CHECKING:
    from broker.registry.jobs import Ask
    from broker.registry.records import Json
    from broker.registry.state import RegistryState
    from broker.registry.versions import Version


def tags_of(body: Json, added: str, removed: str) -> tuple[Tag, ...]:
    """What a request adds and removes, by these names in its body. Errors: RegistryError."""
    found: dict[tuple[str, bool], tuple[list[str], list[str]]] = {}
    for part, name in enumerate((added, removed)):
        rows = body.get(name) or []
        if not isinstance(rows, list):
            raise RegistryError(422, 422, f'"{name}" takes a list')
        for row in rows:
            place, tags = _tag(row, name)
            found.setdefault(place, ([], []))[part].extend(tags)
    return tuple(Tag(path, is_record, tuple(add), tuple(drop)) for (path, is_record), (add, drop) in found.items())


def _tag(row: Any, name: str) -> tuple[tuple[str, bool], list[str]]:
    entity = row.get("schemaEntity") if isinstance(row, dict) else None
    path, kind = (entity.get("entityPath"), entity.get("entityType")) if isinstance(entity, dict) else (None, None)
    tags = row.get("tags") if isinstance(row, dict) else None
    is_named = isinstance(path, str) and isinstance(kind, str) and kind.lower() in ("sr_record", "sr_field")
    if not is_named or not isinstance(tags, list) or not all(isinstance(each, str) for each in tags):
        raise RegistryError(422, 422, f'"{name}" takes objects with "schemaEntity" and "tags"')
    return (str(path).removeprefix("."), str(kind).lower() == "sr_record"), tags


def retagged(state: RegistryState, ask: Ask) -> tuple[str, Given]:
    """The schema that POST /subjects/{subject}/versions/{version}/tags registers, and its subject.

    Errors: RegistryError.
    """
    subject, version, body = subject_of(ask), version_of_path(ask), ask.body
    row = state.get(subject, version)
    if row is None:
        raise errors.version_not_found(version) if state.has(subject) else errors.subject_not_found(subject)
    following = body.get("newVersion")
    if following is not None and type(following) is not int:
        raise RegistryError(422, 422, '"newVersion" takes a whole number')
    metadata = metadata_of(body.get("metadata"), "metadata")
    metadata = row.content.metadata if metadata is None else metadata
    metadata = merged_metadata(metadata or {}, {"properties": {CONFLUENT_VERSION: str(following or 0)}})
    old = row.content
    content = Content(old.schema_type, old.schema, old.references, metadata, _rules(state, subject, body, row))
    return subject, Given(content, following or 0, -1, tags_of(body, "tagsToAdd", "tagsToRemove"))


def _rules(state: RegistryState, subject: str, body: Json, row: Version) -> Json | None:
    """The rules that are given; else those of the version before the new one with what is merged and removed."""
    merged, removed = rules_of(body.get("rulesToMerge")), body.get("rulesToRemove")
    if merged is None and removed is None:
        return rules_of(body.get("ruleSet"))
    if not isinstance(removed, list | None) or not all(isinstance(each, str) for each in removed or ()):
        raise RegistryError(422, 422, '"rulesToRemove" takes a list of names')
    before = state.get(subject, body["newVersion"] - 1 if body.get("newVersion") else LATEST)
    rules = None if before is None else before.content.rule_set
    rules = merged_rules(rules, merged)
    return without_rules(rules, removed) if removed else rules
