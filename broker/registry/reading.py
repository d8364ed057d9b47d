"""The requests that write nothing: they ask for subjects, versions, and schemas by id or guid.

Errors: RegistryError, in all of them.
Source: Confluent's SubjectsResource, SubjectVersionsResource and SchemasResource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.registry import errors
from broker.registry.jobs import Decision
from broker.registry.records import TYPES
from broker.registry.register import formatted
from broker.registry.requests import number_of_path, plain, sliced, subject_of, version_of_path

if TYPE_CHECKING:
    from broker.registry.jobs import Ask, Steps
    from broker.registry.state import RegistryState
    from broker.registry.versions import Version


def _is_shown(row: Version, ask: Ask) -> bool:
    """Whether a version is among those asked for: not deleted, deleted as well, or deleted alone."""
    if ask.flag("deletedOnly"):
        return row.is_deleted
    return ask.flag("deleted") or not row.is_deleted


def list_subjects(state: RegistryState, ask: Ask) -> Decision:
    """GET /subjects."""
    prefix = _prefix(ask)
    names = [
        name
        for name in sorted(state.subjects)
        if name.startswith(prefix) and any(_is_shown(row, ask) for row in state.subjects[name].values())
    ]
    return Decision(sliced(ask, names))


def _prefix(ask: Ask) -> str:
    """What subjects must begin with: ":*:" and ":.:" are all that there are."""
    prefix = ask.query.get("subjectPrefix", "")
    return prefix[3:] if prefix.startswith(":*:") else plain(prefix)


def list_versions(state: RegistryState, ask: Ask) -> Decision:
    """GET /subjects/{subject}/versions."""
    subject = subject_of(ask)
    if not state.has(subject, deleted=ask.flag("deleted") or ask.flag("deletedOnly")):
        raise errors.subject_not_found(subject)
    rows = state.versions(subject, deleted=True)
    if ask.flag("deletedAsNegative"):
        return Decision(sliced(ask, [-row.version if row.is_deleted else row.version for row in rows]))
    return Decision(sliced(ask, [row.version for row in rows if _is_shown(row, ask)]))


def _found(state: RegistryState, ask: Ask, *, deleted: bool) -> Version:
    subject, version = subject_of(ask), version_of_path(ask)
    row = state.get(subject, version, deleted=deleted)
    if row is None:
        raise (
            errors.version_not_found(version)
            if state.has(subject, deleted=deleted)
            else errors.subject_not_found(subject)
        )
    return row


def get_version(state: RegistryState, ask: Ask) -> Steps:
    """GET /subjects/{subject}/versions/{version}."""
    row = _found(state, ask, deleted=ask.flag("deleted"))
    return (yield from formatted(state, ask, row, row.to_json()))


def get_version_text(state: RegistryState, ask: Ask) -> Steps:
    """GET /subjects/{subject}/versions/{version}/schema: the schema alone."""
    row = _found(state, ask, deleted=ask.flag("deleted"))
    made = yield from formatted(state, ask, row, row.to_json())
    return Decision(made.answer["schema"])


def get_referrers(state: RegistryState, ask: Ask) -> Decision:
    """GET /subjects/{subject}/versions/{version}/referencedby: ids of schemas."""
    row = _found(state, ask, deleted=True)
    found = state.referring(row.subject, row.version, deleted=ask.flag("deleted"))
    return Decision(sliced(ask, sorted({each.id for each in found})))


def get_by_metadata(state: RegistryState, ask: Ask) -> Steps:
    """GET /subjects/{subject}/metadata?key=...&value=...: the latest version that has these properties."""
    subject, is_deleted = subject_of(ask), ask.flag("deleted")
    keys, values = ask.query.get("key", "").split("\0"), ask.query.get("value", "").split("\0")
    wanted = dict(zip(keys, values, strict=False)) if "key" in ask.query else {}
    for row in reversed(state.versions(subject, deleted=is_deleted)):
        properties = (row.content.metadata or {}).get("properties")
        if properties is not None and wanted.items() <= properties.items():
            return (yield from formatted(state, ask, row, row.to_json()))
    raise errors.schema_not_found() if state.has(subject, deleted=is_deleted) else errors.subject_not_found(subject)


def _of_id(state: RegistryState, ask: Ask) -> tuple[int, Version]:
    """An id, and the version that shows its content: of the subject that is named, if it has it."""
    number = number_of_path(ask)
    rows = state.of_id(number)
    if not rows:
        raise errors.schema_not_found(number)
    subject = plain(ask.query.get("subject", ""))
    return number, next((row for row in rows if row.subject == subject), rows[0])


def get_schema(state: RegistryState, ask: Ask) -> Steps:
    """GET /schemas/ids/{id}."""
    _, row = _of_id(state, ask)
    answer = {"guid": row.guid, **row.content.to_json()}
    if "subject" in ask.query:
        answer |= {"subject": row.subject, "version": row.version}
    if ask.flag("fetchMaxId"):
        answer["maxId"] = state.highest_id
    return (yield from formatted(state, ask, row, answer))


def get_schema_text(state: RegistryState, ask: Ask) -> Steps:
    """GET /schemas/ids/{id}/schema: the schema alone."""
    _, row = _of_id(state, ask)
    made = yield from formatted(state, ask, row, row.content.to_json())
    return Decision(made.answer["schema"])


def _versions_of_id(state: RegistryState, ask: Ask) -> list[Version]:
    number = number_of_path(ask)
    if number not in state.by_id:
        raise errors.schema_not_found()
    rows = state.of_id(number, deleted=ask.flag("deleted"))
    subject = plain(ask.query.get("subject", ""))
    return [row for row in rows if subject in ("", row.subject)]


def get_subjects_of_id(state: RegistryState, ask: Ask) -> Decision:
    """GET /schemas/ids/{id}/subjects."""
    return Decision(sliced(ask, list(dict.fromkeys(row.subject for row in _versions_of_id(state, ask)))))


def get_versions_of_id(state: RegistryState, ask: Ask) -> Decision:
    """GET /schemas/ids/{id}/versions."""
    rows = _versions_of_id(state, ask)
    return Decision(sliced(ask, [{"subject": row.subject, "version": row.version} for row in rows]))


def _of_guid(state: RegistryState, ask: Ask) -> Version:
    guid = ask.words["guid"].lower().replace("-", "")
    try:
        number = state.id_of(bytes.fromhex(guid))
    except ValueError:
        number = None
    if number is None:
        raise errors.schema_not_found(ask.words["guid"])
    return state.of_id(number)[0]


def get_by_guid(state: RegistryState, ask: Ask) -> Steps:
    """GET /schemas/guids/{guid}."""
    row = _of_guid(state, ask)
    return (yield from formatted(state, ask, row, {"guid": row.guid, **row.content.to_json()}))


def get_ids_of_guid(state: RegistryState, ask: Ask) -> Decision:
    """GET /schemas/guids/{guid}/ids."""
    return Decision([{"context": ".", "id": _of_guid(state, ask).id}])


def list_schemas(state: RegistryState, ask: Ask) -> Decision:
    """GET /schemas: every version, or the latest of each subject."""
    prefix, rows = _prefix(ask), []
    for subject in sorted(state.subjects):
        if subject.startswith(prefix):
            versions = [row for row in state.versions(subject, deleted=True) if _is_shown(row, ask)]
            rows += versions[-1:] if ask.flag("latestOnly") else versions
    return Decision(sliced(ask, [row.to_json() for row in rows]))


def list_types(state: RegistryState, ask: Ask) -> Decision:
    """GET /schemas/types."""
    return Decision(list(TYPES))


def list_contexts(state: RegistryState, ask: Ask) -> Decision:
    """GET /contexts: there is the default one alone."""
    return Decision(sliced(ask, ["."]))


def get_version_of_server(state: RegistryState, ask: Ask) -> Decision:
    """GET /v1/metadata/version: clients that ask want to know what is served; it is what Confluent Platform 7 has."""
    return Decision({"version": "7.9.0-momus", "commitId": ""})


def get_nothing(state: RegistryState, ask: Ask) -> Decision:
    """GET /: whether it is up."""
    return Decision({})
