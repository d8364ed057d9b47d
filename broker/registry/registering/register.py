"""Decides what registering a schema writes, and tests whether one fits.

Behaviour: a content has one id across all subjects of a context; registering it again under a subject changes nothing.
           A new version must fit earlier ones at the level of the subject. IMPORT takes ids, and compares nothing.
Source:    Confluent's API reference; KafkaSchemaRegistry.register, AbstractSchemaRegistry.isCompatible.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.registry import errors
from broker.registry.associations.association import STRONG
from broker.registry.associations.table import Wanted
from broker.registry.contexts import beside as beside_parent
from broker.registry.contexts import context_of, prefix_of
from broker.registry.errors import RegistryError
from broker.registry.jobs import (
    TAGS_WITHIN,
    Checked,
    Decision,
    Job,
    SchemaFaultError,
    Source,
    source_of,
    source_of_version,
    tags_within,
)
from broker.registry.records import CONTEXT, SCHEMA, TENANT, Record
from broker.registry.registering.completion import completed, next_version, pinned
from broker.registry.registering.lookup import Search, by_content, search, sent
from broker.registry.registering.tagging import retagged, tags_of
from broker.registry.requests import LATEST, given_schema, subject_of, version_of_path
from broker.registry.settled import canonical, checked, is_lenient, is_strict, level_of, normalizes, typed, validates
from broker.registry.state import FORWARD, IMPORT, READONLY, READONLY_OVERRIDE, READWRITE
from broker.registry.versions import Content, Version

if TYPE_CHECKING:
    from broker.registry.jobs import Ask, Steps, Tag
    from broker.registry.records import Json
    from broker.registry.requests import Given
    from broker.registry.state import RegistryState

Found = Checked | SchemaFaultError
OWNING: Final = Wanted(lifecycle=STRONG)
DEFAULTS: Final = frozenset(("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet"))


def register(state: RegistryState, ask: Ask) -> Steps:
    """POST /subjects/{subject}/versions. Errors: RegistryError."""
    subject = subject_of(ask, is_new=True)
    return (yield from registered(state, ask, subject)).decision(ask)


def tag(state: RegistryState, ask: Ask) -> Steps:
    """POST /subjects/{subject}/versions/{version}/tags. Errors: RegistryError."""
    subject, given = retagged(state, ask)
    return (yield from _registered(state, ask, subject, given, looks=False)).decision(ask)


class Registered(NamedTuple):
    """A version that is registered; `records`: what makes it, nothing where it is there already."""

    row: Version
    given: Given
    records: tuple[Record, ...] = ()

    def decision(self, ask: Ask) -> Decision:
        """What a registration writes and answers."""
        return Decision(_answer(ask, self.row, self.given, is_new=bool(self.records)), self.records)


Making = Generator[Job, Found, Registered]


def registered(state: RegistryState, ask: Ask, subject: str, *, beside: tuple[Version, ...] = ()) -> Making:
    """What registering the schema of a request writes. Errors: RegistryError.

    beside   versions of other subjects that the same request registers, and that are not in the state yet.
    """
    given = given_schema(ask)
    tags = tags_of(ask.body, "schemaTagsToAdd", "schemaTagsToRemove")
    propagates = ask.body.get("propagateSchemaTags") is True
    looks = not (tags or propagates or DEFAULTS & state.config(subject).keys())
    if tags:
        if not given.content.schema.strip():  # they would be written into that, not into the one before
            raise errors.invalid_schema("Empty schema")
        given = given._replace(version=given.version or LATEST, tags=tags)
    return (yield from _registered(state, ask, subject, given, looks=looks, propagates=propagates, beside=beside))


def _registered(
    state: RegistryState,
    ask: Ask,
    subject: str,
    given: Given,
    *,
    looks: bool,
    propagates: bool = False,
    beside: tuple[Version, ...] = (),
) -> Making:
    """What registering a schema that was read writes. Errors: RegistryError.

    looks        it is first looked for as it was sent, which every mode allows; a schema that is none is told so then.
    propagates   it takes over the tags of the version before it.
    """
    mode = state.mode(subject)
    is_import, looks = mode in (IMPORT, FORWARD), looks and bool(given.content.schema.strip())
    refused = _refusal(mode, subject, given)
    if looks and (
        refused is not None or (given.version == 0 and given.number < 0 and not normalizes(state, subject, ask))
    ):
        same = yield from _quick(state, ask, subject, given, examines=refused is not None)
        if same is not None:
            return Registered(same, given)
    if refused is not None:
        if given.tags:
            found: Found = yield Job(source_of(state, given.content, subject), tags=given.tags)
            checked(subject, given.content, found)
        raise refused
    content = given.content if is_import else completed(state, subject, given)
    if not content.schema.strip():
        raise errors.invalid_schema("Empty schema")
    content = content.with_references(pinned(state, subject, content.references))
    if propagates and not is_import:
        given = given._replace(tags=(*given.tags, *(yield from _tags_before(state, subject))))
    job = _job(state, ask, subject, given, content, is_import=is_import)
    found = yield job
    if isinstance(found, SchemaFaultError) and looks and found.is_of_new:  # one that is there may be none as a new one
        _, same = yield from sent(state, ask, subject, given.content, _wanted(state, subject, given))
        if same is not None and _is_meant(same, given):
            return Registered(same, given)
    content = canonical(subject, content, found, normalized=job.normalize)
    _check_free(state, subject, content)
    same = yield from _there(state, subject, given, content, looks=looks)
    if same is not None:
        return Registered(same, given)
    rows = state.versions(subject) if validates(state, subject) and not is_import and not ask.flag("force") else None
    _check_fit(state, subject, content, checked(subject, content, found), rows)
    return _written(state, subject, given, content, beside, is_import=is_import)


def _check_free(state: RegistryState, subject: str, content: Content) -> None:
    """Errors: RegistryError: a schema refers to a subject that a STRONG association owns."""
    for each in content.references if state.associations else ():
        if state.associations.of_subject(beside_parent(subject, each.subject), OWNING):
            raise errors.not_permitted(f"Subject '{each.subject}' has a strong association and cannot be referenced")


def _job(state: RegistryState, ask: Ask, subject: str, given: Given, content: Content, *, is_import: bool) -> Job:
    """What has to be found out of a schema that is registered. Errors: RegistryError."""
    is_new = given.number < 0 and is_strict(state, subject)
    level = "NONE" if is_import or ask.flag("force") else level_of(state, subject)
    return Job(
        source_of(state, content, subject, deleted=not is_new),
        normalize=not is_import and normalizes(state, subject, ask),
        previous=_previous(state, subject, content, state.versions(subject), level),
        level=level,
        validates=not is_import and validates(state, subject),
        is_new=is_new,
        tags=given.tags,
        is_lenient=is_lenient(state, subject),
        is_lax=is_import,
    )


def _quick(state: RegistryState, ask: Ask, subject: str, given: Given, *, examines: bool) -> Search:
    """The version that is registered again, in its canonical form; `examines`: in any form, where it is a schema."""
    if not examines:
        content = given.content
        return by_content(state, subject, content.with_references(pinned(state, subject, content.references)))
    _, row = yield from sent(state, ask, subject, given.content, _wanted(state, subject, given))
    return row if row is not None and _is_meant(row, given) else None


def _wanted(state: RegistryState, subject: str, given: Given) -> list[Version] | None:
    """The versions among which one is looked for: the latest alone where that is asked for, else all."""
    return state.versions(subject)[-1:] if given.version == LATEST else None


def _is_meant(row: Version, given: Given) -> bool:
    """Whether a version that has the content is the one that was given, by the id and the version that are named."""
    if given.version in (0, LATEST):
        return given.number in (-1, row.id)
    return given.number == row.id and given.version == row.version


def _there(state: RegistryState, subject: str, given: Given, content: Content, *, looks: bool) -> Search:
    """The version that is registered again: as it was sent, or with what it takes over."""
    if looks:
        as_sent = Content(
            content.schema_type, content.schema, content.references, given.content.metadata, given.content.rule_set
        )
        row = yield from search(state, subject, as_sent, _wanted(state, subject, given))
        if row is not None and _is_meant(row, given):
            return row
        other = None if row is None else state.get(subject, given.version) if given.version > 0 else None
        if row is not None and other is not None and other.id == row.id == given.number and other.digest == row.digest:
            return other
    if given.version != 0:
        return None
    row = yield from search(state, subject, content)
    return row if row is not None and given.number in (-1, row.id) else None


def _tags_before(state: RegistryState, subject: str) -> Generator[Job, Found, tuple[Tag, ...]]:
    """The tags within the latest version of a subject. Errors: RegistryError."""
    before = state.get(subject, LATEST)
    if before is None:
        return ()
    found: Found = yield Job(source_of_version(state, before), form=TAGS_WITHIN)
    return tags_within(checked(subject, before.content, found).text)


def _refusal(mode: str, subject: str, given: Given) -> RegistryError | None:
    """Why the mode does not allow it."""
    place = f"Subject {subject} in context {prefix_of(context_of(subject))}"
    if mode in (READONLY, READONLY_OVERRIDE):
        return errors.not_permitted(f"{place} is in read-only mode")
    if given.number >= 0 and mode not in (IMPORT, FORWARD):
        return errors.not_permitted(f"{place} is not in import mode")
    if given.number < 0 and mode != READWRITE:
        return errors.not_permitted(f"{place} is not in read-write mode")
    return None


def _previous(
    state: RegistryState, subject: str, content: Content, rows: list[Version], level: str
) -> tuple[Source, ...]:
    """The versions that a level compares with, of those that are given: those of the content's compatibility group."""
    if level == "NONE":
        return ()
    group = state.config(subject).get("compatibilityGroup")
    if group:
        wanted = _group_of(content, group)
        rows = [row for row in rows if _group_of(row.content, group) == wanted]
    return tuple(source_of_version(state, each) for each in (rows if level.endswith("_TRANSITIVE") else rows[-1:]))


def _group_of(content: Content, group: str) -> object:
    """The property of metadata that says which schemas are compared."""
    return ((content.metadata or {}).get("properties") or {}).get(group)


def _check_fit(
    state: RegistryState, subject: str, content: Content, found: Checked, rows: list[Version] | None
) -> None:
    """`rows`: the versions before it, where its fields are validated. Errors: RegistryError."""
    messages = [*([] if rows is None else _reserved(content, found, rows)), *found.messages]
    if messages:
        raise errors.incompatible(subject, [*messages, _rule(state, subject)], why(subject, found))


def _reserved(content: Content, found: Checked, rows: list[Version]) -> list[str]:
    """What is wrong with the fields that metadata reserve: none is used, and none is given up."""
    mine, before = _reserved_by(content), _reserved_by(rows[-1].content) if rows else set()
    gone = "removed from its metadata which is present in the old schema's metadata."
    return [
        *(f"The new schema has reserved field {name} {gone}" for name in sorted(before - mine)),
        *(
            f"The new schema has field that conflicts with the reserved field {name}."
            for name in sorted(mine)
            if name in found.fields
        ),
    ]


def _reserved_by(content: Content) -> set[str]:
    """The names of fields that a schema's metadata reserve."""
    text = ((content.metadata or {}).get("properties") or {}).get("confluent:reserved", "")
    return {each.strip() for each in text.split(",") if each.strip()}


def _rule(state: RegistryState, subject: str) -> str:
    """By what was judged, as Confluent's registry ends such a list."""
    fields = str(validates(state, subject)).lower()
    return f"{{validateFields: '{fields}', compatibility: '{level_of(state, subject)}'}}"


def why(subject: str, found: Checked) -> str:
    """A sentence about the first difference, for the journal."""
    if not found.differences:
        return f"the new schema of {subject} is of another type than the one before" if found.messages else ""
    first, more = found.differences[0], len(found.differences) - 1
    rest = f", and {more} more" if more else ""
    place = first.path or "/"
    return f"the new schema of {subject} does not fit version {first.version}: {first.kind} at {place}{rest}"


def _written(
    state: RegistryState, subject: str, given: Given, content: Content, others: tuple[Version, ...], *, is_import: bool
) -> Registered:
    """A new version with its records; `others`: what the same request registers. Errors: RegistryError."""
    following, context = next_version(state, subject), context_of(subject)
    others = tuple(row for row in others if context_of(row.subject) == context)
    if given.version > 0 and given.version != following and not is_import:
        raise errors.invalid_schema("Version is not one more than previous version")
    digest = content.digest()
    known = next((row.id for row in others if row.digest == digest), state.id_of(digest, context))
    number = given.number
    if number < 0:
        highest = max((row.id for row in others), default=0)
        number = max(state.highest_ids.get(context, 0), highest) + 1 if known is None else known
    elif any(row.digest != digest for row in state.of_id(number, context)):
        raise errors.not_permitted(
            f"Overwrite new schema with id {number} in context {prefix_of(context)} is not permitted."
        )
    version = given.version if given.version > 0 else following
    row = Version(subject, version, number, content)
    gone = [
        Record(SCHEMA, subject, each.version, None)
        for each in state.versions(subject, deleted=True)
        if each.is_deleted
        and each.id == number
        and each.version < version
        and not state.referring(subject, each.version, deleted=True)
    ]
    named = [] if others or context in state.all_contexts() else [_context(context)]
    return Registered(row, given, (*named, *gone, Record(SCHEMA, subject, version, row.to_value())))


def _context(name: str) -> Record:
    return Record(CONTEXT, name, 0, {"tenant": TENANT, "context": name})


def _answer(ask: Ask, row: Version, given: Given, *, is_new: bool = False) -> Json:
    """What names a version, and the schema where more than its form is not what was given.

    Clients take a schema in the answer for the one that they have registered, and keep it: confluent-kafka then cannot
    read a .proto in the place of the descriptor that it has sent.
    """
    named = {"id": row.id, "version": row.version, "guid": row.guid}
    is_given = given.content.schema.strip() and given.version == 0 and given.content.metadata == row.content.metadata
    is_given = is_given and given.content.rule_set == row.content.rule_set
    if ask.server.is_of_7:  # it repeats what was completed of a new one
        is_completed = is_new and (row.content.metadata is not None or row.content.rule_set is not None)
        return typed(ask, {**named, **row.content.to_json()}) if is_completed else {"id": row.id}
    if is_given:
        return named
    return typed(ask, {**named, **row.content.to_json()})


def test_version(state: RegistryState, ask: Ask) -> Steps:
    """POST /compatibility/subjects/{subject}/versions/{version}. Errors: RegistryError."""
    subject, version = subject_of(ask), version_of_path(ask)
    row = state.get(subject, version)
    if row is None and version != LATEST:
        raise errors.version_not_found(version)
    return (yield from _tested(state, ask, subject, [] if row is None else [row]))


def test_all(state: RegistryState, ask: Ask) -> Steps:
    """POST /compatibility/subjects/{subject}/versions: those that the subject's level names. Errors: RegistryError."""
    subject = subject_of(ask)
    return (yield from _tested(state, ask, subject, state.versions(subject)))


def _tested(state: RegistryState, ask: Ask, subject: str, rows: list[Version]) -> Steps:
    is_verbose, is_empty = ask.flag("verbose"), not given_schema(ask).content.schema.strip()
    messages: list[str]
    try:
        messages = yield from messages_of(state, ask, subject, rows)
    except RegistryError as error:
        if is_empty or not is_verbose or error.code != errors.invalid_schema("").code:
            raise
        messages = [str(error)]
    answer: dict[str, Any] = {"is_compatible": not messages}
    return Decision({**answer, "messages": messages} if is_verbose else answer)


def messages_of(
    state: RegistryState, ask: Ask, subject: str, rows: list[Version] | None = None
) -> Generator[Job, Found, list[str]]:
    """Why the schema of a request does not fit the versions of a subject, or some of them. Errors: RegistryError."""
    rows = state.versions(subject) if rows is None else rows
    given = given_schema(ask)
    content, tags = given.content, tags_of(ask.body, "schemaTagsToAdd", "schemaTagsToRemove")
    if not content.schema.strip():
        raise errors.invalid_schema("Empty schema")
    level, is_new = level_of(state, subject), is_strict(state, subject)
    content = content.with_references(pinned(state, subject, content.references))
    job = Job(
        source_of(state, content, subject, deleted=not is_new),
        normalize=normalizes(state, subject, ask),
        previous=_previous(state, subject, content, rows, level),
        level=level,
        validates=validates(state, subject),
        is_new=is_new,
        tags=tags,
        is_lenient=is_lenient(state, subject),
    )
    made = checked(subject, content, (yield job))
    messages = [*(_reserved(content, made, rows) if validates(state, subject) else ()), *made.messages]
    return [*messages, _rule(state, subject)] if messages else []
