"""Decides what a request changes in the associations of a resource, and registers the schemas that come with them.

Source: Confluent's AbstractSchemaRegistry.createOrUpdateAssociation and deleteAssociations.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple

from broker.registry import errors
from broker.registry.associations.association import STRONG, WEAK, Association
from broker.registry.associations.given import (
    FROZEN_ELSEWHERE,
    WEAK_THERE,
    Given,
    Item,
    checked,
    frozen_otherwise,
    invalid,
    read,
    twice,
    wanted_of,
    with_defaults,
)
from broker.registry.associations.table import Wanted
from broker.registry.contexts import beside, context_of, given_prefix, name_of, normalized
from broker.registry.deletion import gone_with_its_association
from broker.registry.errors import RegistryError
from broker.registry.jobs import Checked, Decision, Job, SchemaFaultError
from broker.registry.records import AssociationKey
from broker.registry.registering.lookup import with_content_of
from broker.registry.registering.register import messages_of, registered
from broker.registry.requests import LATEST
from broker.registry.settled import typed
from broker.registry.state import IMPORT, READONLY, READONLY_OVERRIDE

if TYPE_CHECKING:
    from broker.registry.jobs import Ask, Steps
    from broker.registry.records import Json, Record
    from broker.registry.state import RegistryState
    from broker.registry.versions import Version


Search = Generator[Job, Checked | SchemaFaultError, "Version | None"]
Checks = Generator[Job, Checked | SchemaFaultError, None]


def create(state: RegistryState, ask: Ask) -> Steps:
    """POST /associations. Errors: RegistryError."""
    given = checked(read(ask.body), is_create=True, is_dry=ask.flag("dryRun"))
    return (yield from change(state, ask, given, is_create=True))


def put(state: RegistryState, ask: Ask) -> Steps:
    """PUT /associations/resources/{resourceId}. Errors: RegistryError."""
    given = read(ask.body)
    if given.resource_id not in (None, ask.words["resourceId"]):
        where = "in the path parameter does not match the resource ID in the request body"
        raise invalid("resourceId", f"Resource ID {where}")
    given = given._replace(resource_id=ask.words["resourceId"])
    return (yield from change(state, ask, checked(given, is_create=False, is_dry=ask.flag("dryRun")), is_create=False))


def delete(state: RegistryState, ask: Ask) -> Decision:
    """DELETE /associations/resources/{resourceId}. Errors: RegistryError."""
    resource_id = ask.words["resourceId"]
    rows = state.associations.of_resource(resource_id, wanted_of(ask, by_lifecycle=False))
    if not rows:
        raise errors.association_not_found(resource_id)
    return deleted(state, rows, cascades=ask.flag("cascadeLifecycle"), is_dry=ask.flag("dryRun"))


def deleted(state: RegistryState, rows: list[Association], *, cascades: bool, is_dry: bool) -> Decision:
    """What takes associations away, and the subjects of STRONG ones where it cascades. Errors: RegistryError."""
    for row in rows:
        _check_writable(state, row.subject)
        if row.is_frozen and not cascades:
            raise errors.association_frozen(row.kind, row.subject)
    records: list[Record] = []
    for row in () if is_dry else rows:
        records.append(row.tombstone())
        if cascades and row.lifecycle == STRONG and state.mode(row.subject) != IMPORT:
            records += gone_with_its_association(state, row.subject)
    return Decision(None, tuple(records))


class _One(NamedTuple):
    """An item, the subject that it means, and the association that is there already."""

    item: Item
    subject: str
    old: Association | None

    @property
    def lifecycle(self) -> str:
        """What it has afterwards. Errors: RegistryError: that is not said."""
        found = self.item.lifecycle or (None if self.old is None else self.old.lifecycle)
        if found is None:
            raise invalid("lifecycle", "lifecycle must be set")
        return found

    @property
    def is_frozen(self) -> bool:
        """Whether it is now, or will be where it is not there yet."""
        return self.item.is_frozen is True if self.old is None else self.old.is_frozen

    def is_there(self) -> bool:
        """Whether the association is there, as it is asked for."""
        return (
            self.old is not None
            and self.old.subject == self.subject
            and self.item.lifecycle in (None, self.old.lifecycle)
            and self.item.is_frozen in (None, self.old.is_frozen)
        )


def change(state: RegistryState, ask: Ask, given: Given, *, is_create: bool) -> Steps:
    """What makes associations, or changes them, all or none. Errors: RegistryError."""
    is_dry = ask.flag("dryRun")
    given = _resolved(state, ask, given)
    there = _there(state, given, looks_by_name=is_create and is_dry)
    ones: list[_One] = []
    changed: list[_One] = []
    for item in given.items:
        one = _one(given, item, there.get(item.kind), is_create=is_create)
        ones.append(one)
        if one.old is None:
            yield from _check_new(state, ask, one, is_create=is_create)
        elif one.is_there():
            if is_create and item.schema is not None and (yield from _registered_before(state, ask, one)) is None:
                raise errors.association_exists(one.item.kind, given.name)
            continue
        elif is_create:
            raise errors.association_exists(one.item.kind, given.name)
        else:
            _check_changed(given, one, one.old)
        changed.append(one)
    _check_uniform(state, given._replace(items=tuple(one.item for one in ones)))
    for one in ones:
        _check_subject(state, one, ones)
    for one in ones:
        if one.item.schema is not None:
            messages = yield from messages_of(state, _ask_of(ask, one), one.subject)
            if messages:
                raise errors.incompatible_with(messages)
    if is_dry:
        return Decision(given.to_json())
    return (yield from _made(state, ask, given, ones, changed))


def _ask_of(ask: Ask, one: _One) -> Ask:
    """The registration of the schema of an item."""
    query = {"normalize": "true"} if one.item.normalize else {}
    return ask._replace(words={"subject": one.subject}, query=query, body=one.item.schema or {})


def _resolved(state: RegistryState, ask: Ask, given: Given) -> Given:
    """The same with the subjects that aliases stand for, in the context of the request. Errors: RegistryError."""
    try:
        prefix = given_prefix(ask.query["context"]) if ask.query.get("context") else ""
    except ValueError as error:
        raise RegistryError(errors.BAD_REQUEST, errors.BAD_REQUEST, str(error)) from None
    items = []
    for item in given.items:
        if item.subject is not None:
            subject = state.alias(beside(prefix, item.subject))
            _check_writable(state, subject)
            item = item._replace(subject=subject)
        items.append(item)
    kinds = [item.kind for item in items]
    for kind in kinds:
        if kinds.count(kind) > 1:
            raise twice(kind)
    return given._replace(items=tuple(items))


def _check_writable(state: RegistryState, subject: str) -> None:
    if state.mode(subject) in (READONLY, READONLY_OVERRIDE):
        where = f"Subject {name_of(subject)} in context {context_of(subject)}"
        raise errors.not_permitted(f"{where} is in read-only mode")


def _there(state: RegistryState, given: Given, *, looks_by_name: bool) -> dict[str, Association]:
    """The associations of the resource, by kind; a resource that has no id yet may be looked for by its name."""
    wanted = Wanted(given.resource_type)
    if given.resource_id is not None:
        rows = state.associations.of_resource(given.resource_id, wanted)
    else:
        rows = _latest(state, given) if looks_by_name else []
    return {row.kind: row for row in rows}


def _latest(state: RegistryState, given: Given) -> list[Association]:
    """The associations of the resource of a name that was changed last."""
    rows = state.associations.of_name(given.name, given.namespace, Wanted(given.resource_type))
    last = max(rows, key=lambda row: (row.updated_ms, row.created_ms, row.resource_id), default=None)
    return [] if last is None else [row for row in rows if row.resource_id == last.resource_id]


def _one(given: Given, item: Item, old: Association | None, *, is_create: bool) -> _One:
    """An item beside what is there, with the subject that it means. Errors: RegistryError."""
    if old is None and not is_create:
        item = with_defaults(item, is_create=False)
    default = given.default(item.kind)
    subject = item.subject if item.subject is not None else None if old is None else old.subject
    if subject is None:
        if item.lifecycle != STRONG:
            raise invalid("subject", "must be provided for WEAK associations")
        subject = default
    subject = normalized(subject)
    one = _One(item._replace(subject=subject), subject, old)
    if one.lifecycle == WEAK:
        if item.schema is not None:
            raise invalid("lifecycle", "cannot be WEAK when schema is provided")
        if subject == default:
            raise invalid("subject", WEAK_THERE.format(default))
    wanted = one.is_frozen if item.is_frozen is None else item.is_frozen
    if wanted != (one.lifecycle == STRONG):
        raise frozen_otherwise(one.lifecycle, is_frozen=wanted)
    if one.is_frozen and subject != default:
        raise invalid("subject", FROZEN_ELSEWHERE.format(default))
    return one


def _registered_before(state: RegistryState, ask: Ask, one: _One) -> Search:
    """The version that has the schema of an item."""
    return (yield from with_content_of(state, _ask_of(ask, one), one.subject))


def _check_new(state: RegistryState, ask: Ask, one: _One, *, is_create: bool) -> Checks:
    """Errors: RegistryError: an association that is not there yet cannot be made so."""
    if state.mode(one.subject) == IMPORT:  # it was made elsewhere, with its topic
        return
    if not is_create and one.lifecycle == STRONG:
        made = "STRONG associations must be created with the topic"
        raise invalid("lifecycle", f"cannot be STRONG when creating an association; {made}")
    if not one.item.is_frozen:
        return
    if is_create and one.item.schema is None:
        raise invalid("schema", "schema must be provided when creating a frozen association")
    latest = state.get(one.subject, LATEST)
    if latest is not None:
        found = None
        if one.item.schema is not None and latest.version == 1:
            found = yield from _registered_before(state, ask, one)
        if found is None:
            raise invalid("frozen", "cannot create a frozen association when schemas already exist in the subject")


def _check_changed(given: Given, one: _One, old: Association) -> None:
    """Errors: RegistryError: an association that is there cannot be changed so."""
    item, default = one.item, given.default(one.item.kind)
    if item.lifecycle is None and item.schema is None:
        raise invalid("lifecycle", "at least lifecycle or schema must be provided for update")
    if old.subject != one.subject:
        kept = f"from '{old.subject}' to '{one.subject}'"
        raise invalid("subject", f"subject of association cannot be changed {kept}")
    if old.lifecycle == STRONG and item.lifecycle == WEAK and old.subject == default:
        raise invalid("lifecycle", f"cannot change to WEAK when subject matches default format '{default}'")
    if item.is_frozen not in (None, old.is_frozen):
        raise invalid("frozen", "frozen attribute of association cannot be changed")
    if old.is_frozen:
        raise errors.association_frozen(old.kind, old.subject)


def _check_uniform(state: RegistryState, given: Given) -> None:
    """Errors: RegistryError: the resource would have associations of both lifecycles."""
    if given.resource_id is None:
        rows = _latest(state, given)
    else:
        rows = state.associations.of_resource(given.resource_id, Wanted(given.resource_type))
    found = {row.kind: row.lifecycle for row in rows}
    found |= {item.kind: item.lifecycle for item in given.items if item.lifecycle is not None}
    if len({*found.values()}) > 1:
        told = ", ".join(f"{kind}={lifecycle}" for kind, lifecycle in found.items())
        raise invalid("lifecycle", f"all associations for a resource must have the same lifecycle, but got {told}")


def _check_subject(state: RegistryState, one: _One, ones: list[_One]) -> None:
    """Errors: RegistryError: the subject has no schema, or is another's."""
    item, subject, old = one.item, one.subject, one.old
    if item.schema is not None and state.mode(subject) == IMPORT:
        raise invalid("schema", f"cannot be provided while subject '{subject}' is in IMPORT mode")
    if item.schema is None and not state.has(subject):
        raise errors.no_active_version(subject)
    others = [
        row
        for row in state.associations.of_subject(subject)
        if old is None or (row.resource_id, row.kind) != (old.resource_id, old.kind)
    ]
    if one.lifecycle == STRONG:
        if others:
            raise errors.subject_associated(subject)
        if state.is_referenced(subject) or any(_refers(each, subject) for each in ones):
            raise errors.subject_referenced(subject)
    elif item.is_frozen:
        raise invalid("frozen", "association with lifecycle of WEAK cannot be frozen")
    elif any(row.lifecycle == STRONG for row in others):
        raise errors.subject_strongly_associated(subject)


def _refers(one: _One, subject: str) -> bool:
    """Whether the schema of an item refers to a subject."""
    rows = (one.item.schema or {}).get("references")
    named = [row.get("subject") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return any(isinstance(each, str) and beside(one.subject, each) == subject for each in named)


def _made(state: RegistryState, ask: Ask, given: Given, ones: list[_One], changed: list[_One]) -> Steps:
    """The records of all that is registered and associated, and what is answered. Errors: RegistryError."""
    records: list[Record] = []
    rows: dict[str, Version] = {}
    for one in ones:
        if one.item.schema is not None:
            made = yield from registered(state, _ask_of(ask, one), one.subject, beside=tuple(rows.values()))
            records += made.records
            rows[one.item.kind] = made.row
    infos: list[Json] = []
    for one in changed:
        row = _associated(ask, given, one)
        records.append(row.record())
        version = rows.get(row.kind)
        schema = {} if version is None else {"schema": typed(ask, version.to_json())}
        infos.append({**row.to_info(), **schema})
    return Decision({**given.to_json(), **({"associations": infos} if infos else {})}, tuple(records))


def _associated(ask: Ask, given: Given, one: _One) -> Association:
    """The association that is written."""
    if one.old is not None:
        is_frozen = one.old.is_frozen if one.item.is_frozen is None else one.item.is_frozen
        return one.old._replace(lifecycle=one.lifecycle, is_frozen=is_frozen)
    resource = AssociationKey(given.name, given.namespace, given.resource_type, one.item.kind)
    resource_id = given.resource_id or ""
    guid = ask.guid("\0".join((*resource, one.subject)))
    return Association(resource, one.subject, guid, resource_id, one.lifecycle, one.is_frozen)
