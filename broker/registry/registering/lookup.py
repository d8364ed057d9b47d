"""Finds the version of a subject that has a content: for a client that asks, and before a schema is registered again.

A content is found by what names it, and also where it was sent without the version that its metadata name, or in one
piece though it was registered with references, as generated classes send it.
Source: Confluent's AbstractSchemaRegistry.lookUpSchemaUnderSubject, ParsedSchema.canLookup.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from broker.registry import errors
from broker.registry.contexts import context_of
from broker.registry.jobs import Checked, Job, SchemaFaultError, source_of, source_of_version
from broker.registry.records import AVRO
from broker.registry.registering.completion import pinned, version_named, with_defaults, without_version
from broker.registry.requests import LATEST, given_schema, subject_of
from broker.registry.settled import canonical, formatted, normalizes, validates
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
    subject = next((each for each in state.namesakes(asked) if state.has(each, deleted=is_deleted)), None)
    if subject is None:
        raise errors.subject_not_found(asked)
    if not content.schema.strip():
        raise errors.schema_not_found()
    content = content.with_references(pinned(state, subject, content.references))
    row = by_content(state, subject, content, deleted=is_deleted)
    if row is None:
        found: Found = yield Job(
            source_of(state, content, subject),
            normalize=normalizes(state, subject, ask),
            validates=validates(state, subject),
        )
        content = canonical(subject, content, found, normalized=normalizes(state, subject, ask))
        row = yield from search(state, subject, content, deleted=is_deleted)
        full = with_defaults(state, subject, content, state.get(subject, LATEST))
        if row is None and full.digest() != content.digest():
            row = yield from search(state, subject, full, deleted=is_deleted)
    if row is None:
        raise errors.schema_not_found()
    return (yield from formatted(state, ask, row, row.to_json()))


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
            if content.schema == old.schema:
                return row
        elif not content.references and old.references:
            if content.schema == old.schema:
                return row
            if content.schema_type == AVRO:
                whole: Found = yield Job(source_of_version(state, row), form="resolved")
                if isinstance(whole, Checked) and whole.text == content.schema:
                    return row
    return None


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
