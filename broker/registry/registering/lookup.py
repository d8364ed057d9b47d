"""Finds the version of a subject that has a content: for a client that asks, and before a schema is registered again.

A content is found by what names it, and also where it was sent without the version that its metadata name, or in one
piece though it was registered with references, as generated classes send it.
Source: Confluent's AbstractSchemaRegistry.lookUpSchemaUnderSubject, ParsedSchema.canLookup.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from broker.registry import errors
from broker.registry.contexts import context_of
from broker.registry.jobs import Checked, Job, SchemaFaultError, source_of, source_of_version
from broker.registry.records import AVRO
from broker.registry.registering.completion import pinned, version_named, with_defaults, without_version
from broker.registry.registering.tagging import tags_of
from broker.registry.requests import LATEST, given_schema, subject_of
from broker.registry.settled import canonical, formatted, normalizes, validates
from broker.registry.state import FORWARD, IMPORT
from broker.registry.versions import Content

if TYPE_CHECKING:
    from broker.registry.jobs import Ask, Steps
    from broker.registry.state import RegistryState
    from broker.registry.versions import Version

Found = Checked | SchemaFaultError
Search = Generator[Job, Found, "Version | None"]


def look_up(state: RegistryState, ask: Ask) -> Steps:
    """POST /subjects/{subject}: the version that has a content. Errors: RegistryError."""
    asked, is_deleted = subject_of(ask), ask.flag("deleted")
    content = given_schema(ask).content
    if content.schema.strip():
        there = [each for each in state.namesakes(asked) if state.has(each, deleted=is_deleted)]
        for subject in there or [asked]:  # a schema that is none is told so, also where there is no subject
            row = yield from _looked_for(state, ask, subject, content)
            if row is not None:
                return (yield from formatted(state, ask, row, row.to_json()))
    raise errors.schema_not_found() if state.has(asked, deleted=is_deleted) else errors.subject_not_found(asked)


def with_content_of(state: RegistryState, ask: Ask, subject: str) -> Search:
    """The version of a subject that has the schema of a registration, with its tags. Errors: RegistryError."""
    content, tags = given_schema(ask).content, tags_of(ask.body, "schemaTagsToAdd", "schemaTagsToRemove")
    if not content.schema.strip():
        return None
    if tags:
        found: Found = yield Job(source_of(state, content, subject), tags=tags)
        content = canonical(subject, content, found, normalized=False)
    return (yield from _looked_for(state, ask, subject, content))


def _looked_for(state: RegistryState, ask: Ask, subject: str, content: Content) -> Search:
    """The version of a subject that has a content, also with what it would take over. Errors: RegistryError."""
    is_deleted = ask.flag("deleted")
    content, row = yield from sent(state, ask, subject, content, deleted=is_deleted)
    before = state.get(subject, LATEST)
    if row is None and before is not None:
        full = with_defaults(state, subject, content, before)
        if full.digest() != content.digest():
            row = yield from search(state, subject, full, deleted=is_deleted)
    return row


def sent(
    state: RegistryState,
    ask: Ask,
    subject: str,
    content: Content,
    rows: list[Version] | None = None,
    *,
    deleted: bool = False,
) -> Generator[Job, Found, tuple[Content, Version | None]]:
    """A content as it was sent, in its canonical form, and the version that has it: of a subject, or of `rows`.

    Errors: RegistryError: it is no schema.
    """
    is_normal = normalizes(state, subject, ask) and state.mode(subject) not in (IMPORT, FORWARD)
    content = content.with_references(pinned(state, subject, content.references))
    row = None if is_normal or rows is not None else by_content(state, subject, content, deleted=deleted)
    if row is None:
        is_lax = state.mode(subject) in (IMPORT, FORWARD)
        job = Job(
            source_of(state, content, subject),
            normalize=is_normal,
            validates=not is_lax and validates(state, subject),
            is_lax=is_lax,
        )
        content = canonical(subject, content, (yield job), normalized=is_normal)
        row = yield from search(state, subject, content, rows, deleted=deleted)
    return content, row


def by_content(state: RegistryState, subject: str, content: Content, *, deleted: bool = False) -> Version | None:
    """The newest version of a subject that has the very content; a canonical one needs no examination."""
    if state.id_of(content.digest(), context_of(subject)) is None:
        return None
    return state.with_content(subject, content.digest(), deleted=deleted)


def search(
    state: RegistryState,
    subject: str,
    content: Content,
    rows: list[Version] | None = None,
    *,
    deleted: bool = False,
) -> Search:
    """The newest version of a subject that a canonical content means, or the newest of `rows`."""
    row = by_content(state, subject, content, deleted=deleted) if rows is None else None
    if row is not None:
        return row
    for row in reversed(state.versions(subject, deleted=deleted) if rows is None else rows):
        old = row.content
        if not _is_beside_the_same(content, row) or content.schema_type != old.schema_type:
            continue
        if content.references == pinned(state, subject, old.references):
            if is_same(content.schema_type, content.schema, old.schema):
                return row
        elif not content.references and old.references:
            if is_same(content.schema_type, content.schema, old.schema):
                return row
            if content.schema_type == AVRO:
                whole: Found = yield Job(source_of_version(state, row), form="resolved")
                if isinstance(whole, Checked) and is_same(AVRO, whole.text, content.schema):
                    return row
    return None


def is_same(schema_type: str, one: str, other: str) -> bool:
    """Whether two canonical texts are one schema: in Avro, properties and aliases may stand in another order."""
    if one == other:
        return True
    if schema_type != AVRO or len(one) != len(other):  # another order is as long
        return False
    try:
        return _in_order(one) == _in_order(other)
    except (RecursionError, ValueError):  # one of the topic may be anything
        return False


def _in_order(text: str) -> str:
    """A JSON text with its names, and the aliases, in order; numbers stay as they are written."""

    def sorted_aliases(node: dict[str, Any]) -> dict[str, Any]:
        found = node.get("aliases")
        if isinstance(found, list) and all(isinstance(each, str) for each in found):
            return {**node, "aliases": sorted(found)}
        return node

    return json.dumps(json.loads(text, object_hook=sorted_aliases, parse_float=str), sort_keys=True)


def _is_beside_the_same(content: Content, row: Version) -> bool:
    """Whether metadata and rules are the same, but for the version that one of both names."""
    mine, his = content.metadata, row.content.metadata
    named, his_named = version_named(mine), version_named(his)
    if content.rule_set != row.content.rule_set:
        return False
    if named is None and his_named is not None:
        return without_version(mine) == without_version(his)
    if named is not None and his_named is None:
        return named == str(row.version) and without_version(mine) == without_version(his)
    return mine == his
