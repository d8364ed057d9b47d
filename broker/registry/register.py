"""Decides what registering a schema writes, looks a schema up by its content, and tests whether one fits.

Behaviour: a content has one id across all subjects; registering it again under a subject changes nothing. A new
           version must fit earlier ones at the level of the subject. IMPORT takes ids, and compares nothing.
Source:    Confluent's API reference; KafkaSchemaRegistry.register and AbstractSchemaRegistry.lookUpSchemaUnderSubject.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.registry import errors
from broker.registry.errors import RegistryError
from broker.registry.jobs import Checked, Decision, Job, SchemaFaultError, Source, source_of, source_of_version
from broker.registry.records import SCHEMA, Record
from broker.registry.requests import LATEST, given_schema, subject_of, version_of_path
from broker.registry.state import FORWARD, IMPORT, READONLY, READONLY_OVERRIDE, READWRITE
from broker.registry.versions import Content, Version

if TYPE_CHECKING:
    from broker.registry.jobs import Ask, Steps
    from broker.registry.records import Json
    from broker.registry.requests import Given
    from broker.registry.state import RegistryState

CONFLUENT_VERSION = "confluent:version"
Found = Checked | SchemaFaultError


def register(state: RegistryState, ask: Ask) -> Steps:
    """POST /subjects/{subject}/versions. Errors: RegistryError."""
    subject = subject_of(ask, is_new=True)
    given = given_schema(ask)
    mode = state.mode(subject)
    _check_mode(mode, subject, given)
    is_import = mode in (IMPORT, FORWARD)
    content = given.content if is_import else _completed(state, subject, given)
    if not content.schema.strip():
        raise errors.invalid_schema("Empty schema")
    if given.version == 0 and given.number < 0:
        same = state.with_content(subject, content.digest())
        if same is not None:  # sent again, in its canonical form
            return Decision(_answer(same, given))
    level = "NONE" if is_import or ask.flag("force") else _level(state, subject)
    found: Found = yield Job(
        source_of(state, content),
        normalize=not is_import and _normalizes(state, subject, ask),
        previous=_previous(state, state.versions(subject), level),
        level=level,
        validates=not is_import and _validates(state, subject),
        is_new=given.number < 0 and _is_strict(state, subject),
    )
    content = _canonical(subject, content, found)
    if given.version == 0 and given.number < 0:
        same = state.with_content(subject, content.digest())
        if same is not None:
            return Decision(_answer(same, given))
    _check_fit(state, subject, _checked(subject, content, found))
    return _written(state, subject, given, content, is_import=is_import)


def _check_mode(mode: str, subject: str, given: Given) -> None:
    """Refuse what the mode does not allow."""
    place = f"Subject {subject} in context ."
    if mode in (READONLY, READONLY_OVERRIDE):
        raise errors.not_permitted(f"{place} is in read-only mode")
    if given.number >= 0 and mode not in (IMPORT, FORWARD):
        raise errors.not_permitted(f"{place} is not in import mode")
    if given.number < 0 and mode != READWRITE:
        raise errors.not_permitted(f"{place} is not in read-write mode")


def _completed(state: RegistryState, subject: str, given: Given) -> Content:
    """A schema with what the version before it and the subject's config add: text, metadata."""
    before = state.get(subject, LATEST)
    content = given.content
    if not content.schema.strip() and before is not None:
        metadata = content.metadata
        content = before.content
        content = Content(content.schema_type, content.schema, content.references, metadata or content.metadata)
    config = state.config(subject)
    own = content.metadata
    if own is None and before is not None:
        own = before.content.metadata
    merged = _merged(_merged(config.get("defaultMetadata"), own), config.get("overrideMetadata"))
    if given.version != 0 or CONFLUENT_VERSION in ((merged or {}).get("properties") or {}):
        following = max(state.subjects.get(subject, {}), default=0) + 1
        merged = _merged(merged, {"properties": {CONFLUENT_VERSION: str(following)}})
    return Content(content.schema_type, content.schema, content.references, merged)


def _merged(below: Json | None, above: Json | None) -> Json | None:
    """Metadata of which the second wins, property by property."""
    if below is None or above is None:
        return above if below is None else below
    found: Json = {}
    for name in ("tags", "properties"):
        both = {**(below.get(name) or {}), **(above.get(name) or {})}
        if both:
            found[name] = both
    names = {*(below.get("sensitive") or ()), *(above.get("sensitive") or ())}
    if names:
        found["sensitive"] = sorted(names)
    return found


def _normalizes(state: RegistryState, subject: str, ask: Ask) -> bool:
    return ask.flag("normalize") or state.config(subject).get("normalize") is True


def _validates(state: RegistryState, subject: str) -> bool:
    return state.config(subject).get("validateFields") is True


def _is_strict(state: RegistryState, subject: str) -> bool:
    """Whether a new schema is held to all that Avro asks of one."""
    return state.config(subject).get("validateNewSchemas") is not False


def _level(state: RegistryState, subject: str) -> str:
    return str(state.config(subject)["compatibilityLevel"])


def _previous(state: RegistryState, rows: list[Version], level: str) -> tuple[Source, ...]:
    """The versions that a level compares with, of those that are given."""
    if level == "NONE":
        return ()
    return tuple(source_of_version(state, each) for each in (rows if level.endswith("_TRANSITIVE") else rows[-1:]))


def _checked(subject: str, content: Content, found: Found) -> Checked:
    """Errors: RegistryError: it is no schema."""
    if isinstance(found, SchemaFaultError):
        references = ", ".join(str(each.to_json()) for each in content.references)
        given = (
            f"{{subject={subject},version=0,id=-1,schemaType={content.schema_type},references=[{references}],"
            f"metadata={content.metadata or 'null'},ruleSet=null,schema={content.schema:.10000}}}"
        )
        text = f"Invalid schema {given} with refs [{references}] of type {content.schema_type}, details: {found}"
        raise errors.invalid_schema(text)
    return found


def _canonical(subject: str, content: Content, found: Found) -> Content:
    text = _checked(subject, content, found).text
    return Content(content.schema_type, text, content.references, content.metadata)


def _check_fit(state: RegistryState, subject: str, found: Checked) -> None:
    if found.messages:
        raise errors.incompatible([*found.messages, _rule(state, subject)], why(subject, found))


def _rule(state: RegistryState, subject: str) -> str:
    """By what was judged, as Confluent's registry ends such a list."""
    validates = str(_validates(state, subject)).lower()
    return f"{{validateFields: '{validates}', compatibility: '{_level(state, subject)}'}}"


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
    following = max(state.subjects.get(subject, {}), default=0) + 1
    if given.version > 0 and given.version != following and not is_import:
        raise errors.invalid_schema("Version is not one more than previous version")
    digest = content.digest()
    known = state.id_of(digest)
    number = given.number
    if number < 0:
        number = state.highest_id + 1 if known is None else known
    elif any(row.digest != digest for row in state.of_id(number)):
        raise errors.not_permitted(f"Overwrite new schema with id {number} in context . is not permitted.")
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
    return Decision(_answer(row, given), (*gone, Record(SCHEMA, subject, version, row.to_value())))


def _answer(row: Version, given: Given) -> Json:
    """What names a version, and the schema where more than its form is not what was given.

    Clients take a schema in the answer for the one that they have registered, and keep it: confluent-kafka then cannot
    read a .proto in the place of the descriptor that it has sent.
    """
    named = {"id": row.id, "version": row.version, "guid": row.guid}
    is_given = given.content.schema.strip() and given.content.metadata == row.content.metadata
    return named if is_given else {**named, **row.content.to_json()}


def look_up(state: RegistryState, ask: Ask) -> Steps:
    """POST /subjects/{subject}: the version that has a content. Errors: RegistryError."""
    subject, is_deleted = subject_of(ask), ask.flag("deleted")
    content = given_schema(ask).content
    if not state.has(subject, deleted=is_deleted):
        raise errors.subject_not_found(subject)
    if not content.schema.strip():
        raise errors.schema_not_found()
    row = state.with_content(subject, content.digest(), deleted=is_deleted)
    if row is None:
        found: Found = yield Job(
            source_of(state, content),
            normalize=_normalizes(state, subject, ask),
            validates=_validates(state, subject),
        )
        content = _canonical(subject, content, found)
        row = _with_content(state, subject, content, deleted=is_deleted)
    if row is None:
        raise errors.schema_not_found()
    return (yield from formatted(state, ask, row, row.to_json()))


def _with_content(state: RegistryState, subject: str, content: Content, *, deleted: bool) -> Version | None:
    """The version with a content, or with it and the metadata that registering it would add."""
    row = state.with_content(subject, content.digest(), deleted=deleted)
    before = state.get(subject, LATEST)
    if row is not None or before is None:
        return row
    config = state.config(subject)
    own = before.content.metadata if content.metadata is None else content.metadata
    merged = _merged(_merged(config.get("defaultMetadata"), own), config.get("overrideMetadata"))
    full = Content(content.schema_type, content.schema, content.references, merged)
    return state.with_content(subject, full.digest(), deleted=deleted)


def formatted(state: RegistryState, ask: Ask, row: Version, answer: Json) -> Steps:
    """An answer whose schema is in the form that the parameter `format` asks for. Errors: RegistryError."""
    form = ask.query.get("format", "").strip()
    if form:
        found: Found = yield Job(source_of_version(state, row), form=form)
        answer = {**answer, "schema": _checked(row.subject, row.content, found).text}
    return Decision(answer)


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
        level = _level(state, subject)
        job = Job(
            source_of(state, content),
            normalize=_normalizes(state, subject, ask),
            previous=_previous(state, rows, level),
            level=level,
            validates=_validates(state, subject),
            is_new=_is_strict(state, subject),
        )
        found: Found = yield job
        messages = _checked(subject, content, found).messages
        messages = [*messages, _rule(state, subject)] if messages else []
    except RegistryError as error:
        if not is_verbose or error.code != errors.invalid_schema("").code:
            raise
        messages = [str(error)]
    answer: dict[str, Any] = {"is_compatible": not messages}
    return Decision({**answer, "messages": messages} if is_verbose else answer)
