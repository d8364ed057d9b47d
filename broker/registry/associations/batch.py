"""Many resources in one request: each is asked for, or changed, for itself, and each has its own answer or error.

Source: Confluent's AbstractSchemaRegistry.batchGetAssociations and mutateAssociations.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from broker.registry import errors
from broker.registry.associations.association import LIFECYCLES, TOPIC
from broker.registry.associations.changing import change, deleted
from broker.registry.associations.given import CREATE, DELETE, Given, Item, checked_batch, invalid, read, text_of
from broker.registry.associations.table import Wanted
from broker.registry.errors import RegistryError
from broker.registry.jobs import Decision
from broker.registry.requests import LATEST
from broker.registry.settled import typed

if TYPE_CHECKING:
    from broker.registry.associations.association import Association
    from broker.registry.jobs import Ask, Parts
    from broker.registry.records import Json
    from broker.registry.state import RegistryState


FAILED: Final = 500
# Codes that a change has in a batch too; the others are FAILED there.
TOLD: Final = frozenset((42212, 40901, 40903, 40904, 40905, 40907, 40908, 42206, 42209))
INVALID_SCHEMA: Final = 42201


def get(state: RegistryState, ask: Ask) -> Decision:
    """POST /associations:batchGet. Errors: RegistryError."""
    with_schemas, results = ask.flag("includeSchemas"), []
    for body in _requests(ask):
        try:
            results.append({"result": _found(state, ask, body, with_schemas=with_schemas)})
        except RegistryError as error:
            if error.status == errors.BAD_REQUEST:
                raise
            results.append(_error(ask, error, FAILED, "Error while getting associations: "))
    return Decision({"results": results})


def _found(state: RegistryState, ask: Ask, body: Json, *, with_schemas: bool) -> Json:
    """The associations that one request of a batch asks for."""
    given = {each: text_of(body, each) for each in ("resourceName", "resourceNamespace", "resourceId")}
    name, namespace, resource_id = given.values()
    lifecycle, kinds = body.get("lifecycle"), body.get("associationTypes") or []
    if lifecycle not in (None, *LIFECYCLES) or not isinstance(kinds, list):
        raise RegistryError(errors.BAD_REQUEST, errors.BAD_REQUEST, '"lifecycle" and "associationTypes" are malformed')
    if not resource_id and not name:
        raise _missing("resourceId", "either resourceId or resourceName must be specified")
    if name and not namespace:
        raise _missing("resourceNamespace", "resourceNamespace is required when resourceName is specified")
    wanted = Wanted(text_of(body, "resourceType") or TOPIC, map(str, kinds), lifecycle)
    if resource_id:
        rows = state.associations.of_resource(resource_id, wanted)
    else:
        rows = state.associations.of_name(name or "", namespace or "", wanted)
    if rows:
        resource = rows[0].resource
        said = (resource.name, resource.namespace, rows[0].resource_id)
        given = {
            key: text if text is not None else other for (key, text), other in zip(given.items(), said, strict=True)
        }
    named = {key: text for key, text in given.items() if text}
    return _answer({**named, "resourceType": str(wanted.resource_type)}, rows, _schemas(state, ask, rows, with_schemas))


def _schemas(state: RegistryState, ask: Ask, rows: list[Association], with_schemas: bool) -> dict[str, Json]:
    """The latest version of each subject, by kind."""
    found = {row.kind: state.get(row.subject, LATEST) for row in rows} if with_schemas else {}
    return {kind: typed(ask, row.to_json()) for kind, row in found.items() if row is not None}


def _missing(name: str, detail: str) -> RegistryError:
    return RegistryError(FAILED, FAILED, f"property: {name}; detail: {detail}")


def _answer(named: Json, rows: list[Association], schemas: dict[str, Json]) -> Json:
    """One result. Errors: RegistryError: what was found is not of the one resource that is named."""
    for row in rows:
        of_row = {**row.resource.to_json(), "resourceId": row.resource_id}
        if any(named.get(key) != of_row[key] for key in ("resourceName", "resourceNamespace", "resourceId")):
            one = "resourceName, resourceNamespace, resourceId, and resourceType"
            raise RegistryError(FAILED, FAILED, f"All associations must have the same {one}.")
    infos = [{**row.to_info(), **({"schema": schemas[row.kind]} if row.kind in schemas else {})} for row in rows]
    return {**named, **({"associations": infos} if infos else {})}


def mutate(ask: Ask) -> Parts:
    """POST /associations:batchMutate: parts that are decided and written one after the other. Errors: RegistryError."""
    results, is_dry = [], ask.flag("dryRun")
    givens = [read(body, is_batch=True) for body in _requests(ask)]
    for given in givens:
        try:
            results.append({"result": (yield from _changed(ask, checked_batch(given, is_dry=is_dry), is_dry=is_dry))})
        except RegistryError as error:
            results.append(_told(ask, error))
    return {"results": results}


def _changed(ask: Ask, given: Given, *, is_dry: bool) -> Parts:
    """The changes of one resource: those in a row that make or change associations go together."""
    schemas: dict[str, Json] = {}
    for operation, run in groupby(given.items, key=lambda item: item.operation):
        items = tuple(run)
        if operation == DELETE:
            for item in items:
                yield partial(_without, given=given, item=item, is_dry=is_dry)
            continue
        part = given._replace(items=items)
        answer = yield partial(change, ask=ask, given=part, is_create=operation == CREATE)
        infos = answer.get("associations", ())
        schemas |= {info["associationType"]: info["schema"] for info in infos if "schema" in info}
    rows = () if is_dry else (yield partial(_rows, given=given))
    return _answer(given.to_json(), list(rows), schemas)


def _without(state: RegistryState, given: Given, item: Item, *, is_dry: bool) -> Decision:
    rows = state.associations.of_resource(given.resource_id or "", Wanted(given.resource_type, (item.kind,)))
    return deleted(state, rows, cascades=item.cascades, is_dry=is_dry)


def _rows(state: RegistryState, given: Given) -> Decision:
    """What the resource has then; not for a client."""
    return Decision(state.associations.of_resource(given.resource_id or "", Wanted(given.resource_type)))


def _requests(ask: Ask) -> list[Json]:
    rows = ask.body.get("requests")
    if not isinstance(rows, list | None) or not all(isinstance(row, dict) for row in rows or ()):
        raise RegistryError(errors.BAD_REQUEST, errors.BAD_REQUEST, '"requests" takes a list of objects')
    if not rows:
        raise invalid("requests", "cannot be null or empty")
    return rows


def _told(ask: Ask, error: RegistryError) -> Json:
    """The error of one resource."""
    if error.code == INVALID_SCHEMA:
        return _error(ask, error, invalid("", "").code, "")
    if error.code in TOLD:
        return _error(ask, error, error.as_of(ask.server.release).code, "")
    return _error(ask, error, FAILED, "Error while creating association: ")


def _error(ask: Ask, error: RegistryError, code: int, before: str) -> Json:
    return {"error": {"error_code": code, "message": f"{before}{error}"}}
