"""Decides what registering a schema writes, and tests whether one fits.

Behaviour: a content has one id across all subjects of a context; registering it again under a subject changes nothing.
           A new version must fit earlier ones at the level of the subject. IMPORT takes ids, and compares nothing.
Source:    Confluent's API reference; KafkaSchemaRegistry.register, AbstractSchemaRegistry.isCompatible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.registry import errors
from broker.registry.contexts import context_of
from broker.registry.errors import RegistryError
from broker.registry.jobs import Checked, Decision, Job, SchemaFaultError, Source, source_of, source_of_version
from broker.registry.records import CONTEXT, SCHEMA, TENANT, Record
from broker.registry.registering.completion import completed, next_version, pinned
from broker.registry.registering.lookup import Search, by_content, search
from broker.registry.registering.tagging import retagged, tags_of
from broker.registry.requests import LATEST, given_schema, subject_of, version_of_path
from broker.registry.settled import canonical, checked, is_strict, level_of, normalizes, validates
from broker.registry.state import FORWARD, IMPORT, READONLY, READONLY_OVERRIDE, READWRITE
from broker.registry.versions import Content, Version

if TYPE_CHECKING:
    from broker.registry.jobs import Ask, Steps
    from broker.registry.records import Json
    from broker.registry.requests import Given
    from broker.registry.state import RegistryState

Found = Checked | SchemaFaultError
DEFAULTS: Final = frozenset(("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet"))


def register(state: RegistryState, ask: Ask) -> Steps:
    """POST /subjects/{subject}/versions. Errors: RegistryError."""
    subject, given = subject_of(ask, is_new=True), given_schema(ask)
    if ask.body.get("propagateSchemaTags"):
        raise errors.unserved('tags that a new schema takes over: "propagateSchemaTags"')
    tags = tags_of(ask.body, "schemaTagsToAdd", "schemaTagsToRemove")
    if tags:
        given = given._replace(version=given.version or LATEST, tags=tags)
    return (yield from _registered(state, ask, subject, given))


def tag(state: RegistryState, ask: Ask) -> Steps:
    """POST /subjects/{subject}/versions/{version}/tags. Errors: RegistryError."""
    subject, given = retagged(state, ask)
    return (yield from _registered(state, ask, subject, given))


def _registered(state: RegistryState, ask: Ask, subject: str, given: Given) -> Steps:
    """What registering a schema that was read writes. Errors: RegistryError."""
    mode, may_be_there = state.mode(subject), given.number < 0 and given.version <= 0 and not given.tags
    if not may_be_there:
        _check_mode(mode, subject, given)
    is_import, is_new = mode in (IMPORT, FORWARD), given.number < 0 and is_strict(state, subject)
    content = given.content if is_import else completed(state, subject, given)
    if not content.schema.strip():
        raise errors.invalid_schema("Empty schema")
    content = content.with_references(pinned(state, subject, content.references))
    same = by_content(state, subject, content) if may_be_there and given.version == 0 else None
    if same is not None:  # sent again, in its canonical form
        return Decision(_answer(same, given))
    level = "NONE" if is_import or ask.flag("force") else level_of(state, subject)
    is_normal = not is_import and normalizes(state, subject, ask)
    found: Found = yield Job(
        source_of(state, content, subject, deleted=not is_new),
        normalize=is_normal,
        previous=_previous(state, subject, content, state.versions(subject), level),
        level=level,
        validates=not is_import and validates(state, subject),
        is_new=is_new,
        tags=given.tags,
    )
    content = canonical(subject, content, found, normalized=is_normal)
    same = (yield from _there(state, subject, given, content)) if may_be_there else None
    if same is not None:
        return Decision(_answer(same, given))
    _check_mode(mode, subject, given)
    rows = state.versions(subject) if validates(state, subject) and not is_import and not ask.flag("force") else None
    _check_fit(state, subject, content, checked(subject, content, found), rows)
    return _written(state, subject, given, content, is_import=is_import)


def _there(state: RegistryState, subject: str, given: Given, content: Content) -> Search:
    """The version that is registered again: as it was sent, or with what it takes over; the latest alone for -1."""
    wanted = state.versions(subject)[-1:] if given.version == LATEST else None
    row = None
    if not DEFAULTS & state.config(subject).keys():
        sent = Content(
            content.schema_type, content.schema, content.references, given.content.metadata, given.content.rule_set
        )
        row = yield from search(state, subject, sent, wanted)
    if row is None and given.version == 0:
        row = yield from search(state, subject, content, wanted)
    return row


def _check_mode(mode: str, subject: str, given: Given) -> None:
    """Refuse what the mode does not allow."""
    place = f"Subject {subject} in context {context_of(subject)}"
    if mode in (READONLY, READONLY_OVERRIDE):
        raise errors.not_permitted(f"{place} is in read-only mode")
    if given.number >= 0 and mode not in (IMPORT, FORWARD):
        raise errors.not_permitted(f"{place} is not in import mode")
    if given.number < 0 and mode != READWRITE:
        raise errors.not_permitted(f"{place} is not in read-write mode")


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


def _written(state: RegistryState, subject: str, given: Given, content: Content, *, is_import: bool) -> Decision:
    """The records of a new version, and its answer. Errors: RegistryError."""
    following, context = next_version(state, subject), context_of(subject)
    if given.version > 0 and given.version != following and not is_import:
        raise errors.invalid_schema("Version is not one more than previous version")
    digest = content.digest()
    known = state.id_of(digest, context)
    number = given.number
    if number < 0:
        number = state.highest_ids.get(context, 0) + 1 if known is None else known
    elif any(row.digest != digest for row in state.of_id(number, context)):
        raise errors.not_permitted(f"Overwrite new schema with id {number} in context {context} is not permitted.")
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
    named = [] if context in state.all_contexts() else [_context(context)]
    return Decision(_answer(row, given), (*named, *gone, Record(SCHEMA, subject, version, row.to_value())))


def _context(name: str) -> Record:
    return Record(CONTEXT, name, 0, {"tenant": TENANT, "context": name})


def _answer(row: Version, given: Given) -> Json:
    """What names a version, and the schema where more than its form is not what was given.

    Clients take a schema in the answer for the one that they have registered, and keep it: confluent-kafka then cannot
    read a .proto in the place of the descriptor that it has sent.
    """
    named = {"id": row.id, "version": row.version, "guid": row.guid}
    is_given = given.content.schema.strip() and given.version == 0 and given.content.metadata == row.content.metadata
    is_given = is_given and given.content.rule_set == row.content.rule_set
    return named if is_given else {**named, **row.content.to_json()}


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
    content = given_schema(ask).content
    if not content.schema.strip():
        raise errors.invalid_schema("Empty schema")
    is_verbose = ask.flag("verbose")
    messages: list[str]
    try:
        level, is_new = level_of(state, subject), is_strict(state, subject)
        content = content.with_references(pinned(state, subject, content.references))
        job = Job(
            source_of(state, content, subject, deleted=not is_new),
            normalize=normalizes(state, subject, ask),
            previous=_previous(state, subject, content, rows, level),
            level=level,
            validates=validates(state, subject),
            is_new=is_new,
        )
        found: Found = yield job
        made = checked(subject, content, found)
        messages = [*(_reserved(content, made, rows) if validates(state, subject) else ()), *made.messages]
        messages = [*messages, _rule(state, subject)] if messages else []
    except RegistryError as error:
        if not is_verbose or error.code != errors.invalid_schema("").code:
            raise
        messages = [str(error)]
    answer: dict[str, Any] = {"is_compatible": not messages}
    return Decision({**answer, "messages": messages} if is_verbose else answer)
