"""What was found out about a schema, as handlers use it; and the settings of its subject that decide what is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.registry import errors
from broker.registry.contexts import beside
from broker.registry.jobs import TAGS_WITHIN, Checked, Decision, Job, SchemaFaultError, source_of_version, tags_within
from broker.registry.records import AVRO
from broker.registry.releases import FIELDS_OF_8
from broker.registry.settings import LENIENT
from broker.registry.versions import Content

if TYPE_CHECKING:
    from broker.registry.jobs import Ask, Steps
    from broker.registry.records import Json
    from broker.registry.state import RegistryState
    from broker.registry.versions import Version

Found = Checked | SchemaFaultError


def normalizes(state: RegistryState, subject: str, ask: Ask) -> bool:
    """Whether a request wants the normalized form, or the subject's config does."""
    return ask.flag("normalize") or state.config(subject).get("normalize") is True


def validates(state: RegistryState, subject: str) -> bool:
    """Whether the fields of schemas are looked at."""
    return state.config(subject).get("validateFields") is True


def is_strict(state: RegistryState, subject: str) -> bool:
    """Whether a new schema is held to all that Avro asks of one."""
    return state.config(subject).get("validateNewSchemas") is not False


def is_lenient(state: RegistryState, subject: str) -> bool:
    """Whether JSON Schemas may also gain and lose properties in an open content model."""
    return str(state.config(subject).get("compatibilityPolicy", "")).upper() == LENIENT


def level_of(state: RegistryState, subject: str) -> str:
    """How the schemas of a subject must fit each other."""
    return str(state.config(subject)["compatibilityLevel"])


def checked(subject: str, content: Content, found: Found) -> Checked:
    """Errors: RegistryError: it is no schema."""
    if isinstance(found, SchemaFaultError):
        references = ", ".join(str(each.to_json()) for each in content.references)
        given = (
            f"{{subject={subject},version=0,id=-1,schemaType={content.schema_type},references=[{references}],"
            f"metadata={content.metadata or 'null'},ruleSet={content.rule_set or 'null'},"
            f"schema={content.schema:.10000}}}"
        )
        text = f"Invalid schema {given} with refs [{references}] of type {content.schema_type}, details: {found}"
        raise errors.invalid_schema(text)
    return found


def canonical(subject: str, content: Content, found: Found, *, normalized: bool) -> Content:
    """A content in the form that was asked for; normalized references are sorted. Errors: as `checked`."""
    text, references = checked(subject, content, found).text, content.references
    if normalized:
        references = tuple(dict.fromkeys(sorted(references, key=lambda each: (each.subject, each.version))))
    return Content(content.schema_type, text, references, content.metadata, content.rule_set)


def formatted(state: RegistryState, ask: Ask, row: Version, answer: Json) -> Steps:
    """An answer whose schema is in the form that the parameter `format` asks for. Errors: RegistryError."""
    form = ask.query.get("format", "").strip()
    if form:
        found: Found = yield Job(source_of_version(state, row), form=form)
        answer = {**answer, "schema": checked(row.subject, row.content, found).text}
    return Decision(typed(ask, answer))


def with_more(state: RegistryState, ask: Ask, row: Version, answer: Json) -> Steps:
    """The same with what `referenceFormat` and `findTags` ask for. Errors: RegistryError."""
    if ask.query.get("referenceFormat") == "qualified" and "references" in answer:
        rows = [{**each.to_json(), "subject": beside(row.subject, each.subject)} for each in row.references]
        answer = {**answer, "references": rows}
    wanted = ask.query["findTags"].split("\0") if "findTags" in ask.query else []
    if wanted:
        found: Found = yield Job(source_of_version(state, row), form=TAGS_WITHIN)
        tags = tags_within(checked(row.subject, row.content, found).text)
        rows = [each.to_json() for each in tags if "*" in wanted or not {*wanted}.isdisjoint(each.added)]
        answer = {**answer, **({"schemaTags": rows} if rows else {})}
    return (yield from formatted(state, ask, row, answer))


def typed(ask: Ask, answer: Json) -> Json:
    """An answer with the fields that the release has: AVRO as a type since 8.0, no new ones before."""
    if ask.server.is_of_7:
        return {key: value for key, value in answer.items() if key not in FIELDS_OF_8}
    return {**answer, "schemaType": answer.get("schemaType", AVRO)} if ask.server.is_of_8 else answer
