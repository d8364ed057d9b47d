"""The requests that write nothing: they ask for subjects, versions, and schemas by id or guid.

Errors: RegistryError, in all of them.
Source: Confluent's SubjectsResource, SubjectVersionsResource and SchemasResource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.registry import errors
from broker.registry.associations.association import LIFECYCLES
from broker.registry.associations.table import Wanted
from broker.registry.contexts import ANY, GLOBAL, context_of, name_of, normalized
from broker.registry.jobs import Decision
from broker.registry.records import TYPES
from broker.registry.releases import SERVER_VERSIONS
from broker.registry.requests import LATEST, number_of_path, part_of, subject_of, version_of_path
from broker.registry.rules import has_rule
from broker.registry.settled import formatted, typed, with_more

if TYPE_CHECKING:
    from broker.registry.associations.association import Association
    from broker.registry.jobs import Ask, Steps
    from broker.registry.records import Json
    from broker.registry.state import RegistryState
    from broker.registry.versions import Version

NO_LIFECYCLE: Final = "NONE"  # a subject that has no association


def _is_shown(row: Version, ask: Ask) -> bool:
    """Whether a version is among those asked for: not deleted, deleted as well, or deleted alone."""
    if ask.flag("deletedOnly"):
        return row.is_deleted
    return ask.flag("deleted") or not row.is_deleted


def list_subjects(state: RegistryState, ask: Ask) -> Decision:
    """GET /subjects."""
    part = part_of(ask)
    names = [
        name
        for name in _named(state, ask, ANY)
        if any(_is_shown(row, ask) for row in state.subjects[name].values())
        and not (ask.flag("deletedOnly") and state.has(name))
    ]
    return Decision(names[part])


def _named(state: RegistryState, ask: Ask, unsaid: str) -> list[str]:
    """The subjects that a request asks for by what they begin with; `unsaid`: where it does not say it."""
    prefix = ask.query.get("subjectPrefix", unsaid)
    if prefix.startswith(ANY):
        return [each for each in sorted(state.subjects) if name_of(each).startswith(prefix[len(ANY) :])]
    prefix = normalized(prefix) if prefix.startswith(":") else prefix
    return [
        each for each in sorted(state.subjects) if each.startswith(prefix) and context_of(each) == context_of(prefix)
    ]


def list_versions(state: RegistryState, ask: Ask) -> Decision:
    """GET /subjects/{subject}/versions."""
    subject, part = subject_of(ask), part_of(ask)
    if not state.has(subject, deleted=ask.flag("deleted") or ask.flag("deletedOnly")):
        raise errors.subject_not_found(subject)
    rows = state.versions(subject, deleted=True)
    if ask.flag("deletedAsNegative"):
        return Decision([-row.version if row.is_deleted else row.version for row in rows][part])
    return Decision([row.version for row in rows if _is_shown(row, ask)][part])


def _found(state: RegistryState, ask: Ask, *, deleted: bool) -> Version:
    """A version; of a subject of the default context that has none, that of another context's subject of its name."""
    subject, version = subject_of(ask), version_of_path(ask)
    for each in state.namesakes(subject):
        row = state.get(each, version, deleted=deleted and version != LATEST)
        if row is not None:
            return row
    if state.has(subject, deleted=deleted):
        raise errors.version_not_found(version)
    raise errors.subject_not_found(subject)


def get_version(state: RegistryState, ask: Ask) -> Steps:
    """GET /subjects/{subject}/versions/{version}."""
    row = _found(state, ask, deleted=ask.flag("deleted"))
    return (yield from with_more(state, ask, row, row.to_json()))


def get_version_text(state: RegistryState, ask: Ask) -> Steps:
    """GET /subjects/{subject}/versions/{version}/schema: the schema alone."""
    row = _found(state, ask, deleted=ask.flag("deleted"))
    made = yield from formatted(state, ask, row, row.to_json())
    return Decision(made.answer["schema"])


def get_referrers(state: RegistryState, ask: Ask) -> Decision:
    """GET /subjects/{subject}/versions/{version}/referencedby: ids of schemas."""
    part, row = part_of(ask), _found(state, ask, deleted=True)
    found = state.referring(row.subject, row.version, deleted=ask.flag("deleted"))
    return Decision(sorted({each.id for each in found})[part])


def get_by_metadata(state: RegistryState, ask: Ask) -> Steps:
    """GET /subjects/{subject}/metadata?key=...&value=...: the latest version that has these properties."""
    subject, is_deleted = subject_of(ask), ask.flag("deleted")
    keys, values = ask.query.get("key", "").split("\0"), ask.query.get("value", "").split("\0")
    wanted = dict(zip(keys, values, strict=False)) if "key" in ask.query else {}
    for row in reversed(state.versions(subject, deleted=is_deleted)):
        metadata = row.content.metadata
        if metadata is not None and wanted.items() <= (metadata.get("properties") or {}).items():
            return (yield from formatted(state, ask, row, row.to_json()))
    raise errors.schema_not_found() if state.has(subject, deleted=is_deleted) else errors.subject_not_found(subject)


def _of_id(state: RegistryState, ask: Ask) -> tuple[int, Version]:
    """An id, and the version that shows its content: of the subject that is named, if it has it."""
    number = number_of_path(ask)
    row = state.with_id(number, normalized(ask.query.get("subject", "")))
    if row is None:
        raise errors.schema_not_found(number)
    return number, row


def get_schema(state: RegistryState, ask: Ask) -> Steps:
    """GET /schemas/ids/{id}."""
    _, row = _of_id(state, ask)
    answer = {"guid": row.guid, **row.content.to_json(), **row.stands()}
    if ("subject" in ask.query and not ask.server.is_of_7) or ask.server.is_of_8:
        answer |= {"subject": row.subject, "version": row.version}
    if ask.flag("fetchMaxId"):
        answer["maxId"] = state.highest_ids.get(context_of(row.subject), 0)
    return (yield from with_more(state, ask, row, answer))


def get_schema_text(state: RegistryState, ask: Ask) -> Steps:
    """GET /schemas/ids/{id}/schema: the schema alone."""
    _, row = _of_id(state, ask)
    made = yield from formatted(state, ask, row, row.content.to_json())
    return Decision(made.answer["schema"])


def _versions_of_id(state: RegistryState, ask: Ask) -> list[Version]:
    number, asked = number_of_path(ask), normalized(ask.query.get("subject", ""))
    row = state.with_id(number, asked)
    if row is None:
        raise errors.schema_not_found()
    return state.of_id(number, context_of(row.subject), deleted=ask.flag("deleted"))


def get_subjects_of_id(state: RegistryState, ask: Ask) -> Decision:
    """GET /schemas/ids/{id}/subjects."""
    part = part_of(ask)
    return Decision(list(dict.fromkeys(row.subject for row in _versions_of_id(state, ask)))[part])


def get_versions_of_id(state: RegistryState, ask: Ask) -> Decision:
    """GET /schemas/ids/{id}/versions."""
    part = part_of(ask)
    return Decision([{"subject": row.subject, "version": row.version} for row in _versions_of_id(state, ask)][part])


def _ids_of_guid(state: RegistryState, ask: Ask) -> list[tuple[str, int]]:
    """The contexts that have a content, and its id in each."""
    try:
        digest = bytes.fromhex(ask.words["guid"].lower().replace("-", ""))
    except ValueError:
        digest = b""
    found = [(each, state.id_of(digest, each)) for each in state.all_contexts()]
    return [(context, number) for context, number in found if number is not None]


def _of_guid(state: RegistryState, ask: Ask) -> Version:
    rows = _ids_of_guid(state, ask)
    if not rows:
        raise errors.schema_not_found(ask.words["guid"])
    context, number = rows[0]
    return state.of_id(number, context)[0]


def get_by_guid(state: RegistryState, ask: Ask) -> Steps:
    """GET /schemas/guids/{guid}."""
    row = _of_guid(state, ask)
    return (yield from formatted(state, ask, row, {"guid": row.guid, **row.content.to_json(), **row.stands()}))


def get_ids_of_guid(state: RegistryState, ask: Ask) -> Decision:
    """GET /schemas/guids/{guid}/ids."""
    return Decision([{"context": context, "id": number} for context, number in _ids_of_guid(state, ask)])


def list_schemas(state: RegistryState, ask: Ask) -> Decision:
    """GET /schemas: every version, or the latest of each subject; with `aliases` under their other names too."""
    part, is_deleted = part_of(ask), ask.flag("deleted")
    names, rule = _named(state, ask, ""), ask.query.get("ruleType", "")
    others = _aliases(state, ask) if ask.flag("aliases") else {}
    if not {*ask.values("lifecycle")} <= {*LIFECYCLES, NO_LIFECYCLE}:
        raise errors.of_http(404, "Not Found")
    rows: list[Json] = []
    for subject in sorted({*names, *(each for each in others if each in state.subjects)}):
        associated = _associated(state, ask, subject)
        if associated is None:
            continue
        more = {"aliases": others.get(subject), "associations": [each.to_json() for each in associated]}
        versions = state.versions(subject, deleted=is_deleted)
        for row in versions[-1:] if ask.flag("latestOnly") else versions:
            if not rule or has_rule(row.content.rule_set, rule):
                rows.append({**typed(ask, row.to_json()), **{name: each for name, each in more.items() if each}})
    return Decision(rows[part])


def _associated(state: RegistryState, ask: Ask, subject: str) -> list[Association] | None:
    """The associations of a subject that a request asks for, where it does; None: the subject is not asked for."""
    lifecycles, kinds = ask.values("lifecycle"), ask.values("associationType")
    if not lifecycles and not kinds and "resourceType" not in ask.query:
        return []
    found = state.associations.of_subject(subject, Wanted(ask.query.get("resourceType"), kinds))
    if not found:
        return [] if NO_LIFECYCLE in lifecycles else None
    return [each for each in found if not lifecycles or each.lifecycle in lifecycles] or None


def _aliases(state: RegistryState, ask: Ask) -> dict[str, list[str]]:
    """The names that stand for subjects, of those that a request asks for."""
    prefix = ask.query.get("subjectPrefix", "")
    found: dict[str, list[str]] = {}
    for name in sorted(each for each in state.configs if each is not None and each != GLOBAL):
        fits = name_of(name).startswith(prefix[len(ANY) :]) if prefix.startswith(ANY) else name.startswith(prefix)
        if fits and state.configs[name].get("alias"):
            found.setdefault(state.alias(name), []).append(name)
    return found


def list_types(state: RegistryState, ask: Ask) -> Decision:
    """GET /schemas/types."""
    return Decision(list(TYPES))


def list_contexts(state: RegistryState, ask: Ask) -> Decision:
    """GET /contexts: the default one, and those that have had schemas."""
    prefix = ask.query.get("contextPrefix", "")
    return Decision([each for each in state.all_contexts() if each.startswith(prefix)][part_of(ask)])


def get_version_of_server(state: RegistryState, ask: Ask) -> Decision:
    """GET /v1/metadata/version: the release that it answers as."""
    return Decision({"version": SERVER_VERSIONS[ask.server.release], "commitId": ""})


def get_server_id(state: RegistryState, ask: Ask) -> Decision:
    """GET /v1/metadata/id: which cluster's registry it is."""
    clusters = {"kafka-cluster": ask.server.cluster_id, "schema-registry-cluster": "schema-registry"}
    return Decision({"scope": {"path": [], "clusters": clusters}})


def get_deployment(state: RegistryState, ask: Ask) -> Decision:
    """GET /v1/metadata/deployment: nothing is said of it."""
    return Decision({"attributes": []})


def get_nothing(state: RegistryState, ask: Ask) -> Decision:
    """GET /: whether it is up."""
    return Decision({})
