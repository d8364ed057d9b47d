"""Reads what a request says of associations. Errors: RegistryError, in all of it.

A body is read whole before any of it is judged, as Confluent's registry does: what is of another form is 400, what does
not go together 422.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.registry import errors
from broker.registry.associations.association import KEY, LIFECYCLES, STRONG, TOPIC, VALUE, WEAK
from broker.registry.associations.table import Wanted
from broker.registry.errors import RegistryError
from broker.registry.requests import has_control

if TYPE_CHECKING:
    from broker.registry.jobs import Ask
    from broker.registry.records import Json

LONGEST_NAME: Final = 256
CREATE, UPSERT, DELETE = "CREATE", "UPSERT", "DELETE"
OPERATIONS: Final = (CREATE, DELETE, UPSERT)
FROZEN_ELSEWHERE: Final = "frozen associations must use subject '{}'"
WEAK_THERE: Final = "WEAK associations cannot use subject '{}'"


class Item(NamedTuple):
    """One association of a request.

    operation   of a batch; "" elsewhere.
    schema      the body of a registration.
    cascades    whether a STRONG one that is deleted takes its subject with it.
    """

    operation: str
    subject: str | None
    kind: str
    lifecycle: str | None
    is_frozen: bool | None
    schema: Json | None
    normalize: bool
    cascades: bool = False


class Given(NamedTuple):
    """A resource with associations; `resource_id` None: it has no id yet, for a dry run."""

    name: str
    namespace: str
    resource_id: str | None
    resource_type: str
    items: tuple[Item, ...]

    def default(self, kind: str) -> str:
        """The subject that a STRONG association has."""
        return f":.{self.namespace}:{self.name}-{kind}"

    def to_json(self) -> Json:
        """What an answer says of it."""
        named = {"resourceName": self.name, "resourceNamespace": self.namespace, "resourceId": self.resource_id}
        return {key: text for key, text in {**named, "resourceType": self.resource_type}.items() if text is not None}


def wanted_of(ask: Ask, *, by_lifecycle: bool = True) -> Wanted:
    """Which associations the parameters of a request ask for."""
    lifecycle = next(iter(ask.values("lifecycle")), None) if by_lifecycle else None
    if lifecycle not in (None, *LIFECYCLES):
        raise errors.of_http(404, "Not Found")
    return Wanted(ask.query.get("resourceType") or TOPIC, ask.values("associationType"), lifecycle)


def read(body: Json, *, is_batch: bool = False) -> Given:
    """A resource with associations, of which nothing is judged yet."""
    rows = body.get("associations")
    if not isinstance(rows, list | None):
        raise _malformed("associations", "a list")
    names = (text_of(body, each) for each in ("resourceName", "resourceNamespace", "resourceId", "resourceType"))
    name, namespace, resource_id, resource_type = names
    items = tuple(_item(row, is_batch=is_batch) for row in rows or ())
    return Given(name or "", namespace or "", resource_id, resource_type or "", items)


def checked(given: Given, *, is_create: bool, is_dry: bool) -> Given:
    """The same with what is not said; what does not go together is refused."""
    given = _of_resource(given, is_dry=is_dry)
    items = []
    for item in given.items:
        item = _alone(item, is_create=is_create)
        items.append(in_place(given, item) if is_create else item)
    return given._replace(items=tuple(items))


def checked_batch(given: Given, *, is_dry: bool) -> Given:
    """The same of a batch, whose items say each what is done."""
    given = _of_resource(given, is_dry=is_dry)
    items: list[Item] = []
    for item in given.items:
        if item.operation == CREATE:  # judged first in a batch, after the subject elsewhere
            item = with_defaults(item, is_create=True)
        item = _alone(item, is_create=item.operation == CREATE)
        if any(item.kind == each.kind for each in items):
            raise twice(item.kind)
        items.append(in_place(given, item) if item.operation == CREATE else item)
    return given._replace(items=tuple(items))


def twice(kind: str) -> RegistryError:
    """A request names the keys, or the values, again."""
    return invalid("associationType", f"may only appear once per request, but '{kind}' appears more than once")


def _of_resource(given: Given, *, is_dry: bool) -> Given:
    _check_name("resourceName", given.name)
    _check_name("resourceNamespace", given.namespace)
    if not is_dry and not given.resource_id:
        raise invalid("resourceId", "cannot be null or empty")
    if given.resource_type not in ("", TOPIC):
        raise invalid("resourceType", f"must be '{TOPIC}'")
    if not given.items:
        raise invalid("associations", "cannot be null or empty")
    return given._replace(resource_type=TOPIC)


def _check_name(name: str, text: str) -> None:
    if not text:
        raise invalid(name, "cannot be null or empty")
    if len(text) > LONGEST_NAME:
        raise invalid(name, f"exceeds max length of {LONGEST_NAME}")
    for letter in text:
        if not letter.isalnum() and letter not in "_-":
            raise invalid(name, f"illegal character '{letter}'")


def _alone(item: Item, *, is_create: bool) -> Item:
    """An item that goes together in itself, with defaults where it makes an association."""
    if item.subject is not None and (not item.subject or has_control(item.subject)):
        raise invalid("subject", "must not be empty")
    if is_create:
        item = with_defaults(item, is_create=True)
    if item.kind not in ("", KEY, VALUE):
        raise invalid("associationType", f"must be either '{KEY}' or '{VALUE}'")
    item = item._replace(kind=item.kind or VALUE)
    if item.lifecycle == WEAK:
        if item.schema is not None:
            raise invalid("lifecycle", "cannot be WEAK when schema is provided")
        if item.is_frozen:
            raise invalid("frozen", "association with lifecycle of WEAK cannot be frozen")
        if is_create and item.subject is None:
            raise invalid("subject", "must be provided for WEAK associations")
    return item


def with_defaults(item: Item, *, is_create: bool) -> Item:
    """What an association has that is not there yet: a schema makes it STRONG, else it is WEAK unless it says so."""
    if item.schema is not None:
        if not is_create:
            made = "an association with a schema must be created with the topic"
            raise invalid("schema", f"cannot be provided when adding an association to an existing topic; {made}")
        if item.lifecycle == WEAK:
            raise invalid("lifecycle", "cannot be WEAK when schema is provided")
        if item.is_frozen is False:
            raise invalid("frozen", "cannot be false when a schema is provided")
    lifecycle = STRONG if item.schema is not None else item.lifecycle or WEAK
    is_frozen = lifecycle == STRONG
    if item.is_frozen not in (None, is_frozen):
        raise frozen_otherwise(lifecycle, is_frozen=not is_frozen)
    return item._replace(lifecycle=lifecycle, is_frozen=is_frozen)


def frozen_otherwise(lifecycle: str, *, is_frozen: bool) -> RegistryError:
    """STRONG is frozen, and WEAK is not."""
    return invalid("frozen", f"association with lifecycle of {lifecycle} cannot be frozen={str(is_frozen).lower()}")


def in_place(given: Given, item: Item) -> Item:
    """An association that is made, with its subject: the default one belongs to what is frozen."""
    default = given.default(item.kind)
    subject = default if item.subject is None else item.subject
    if item.is_frozen and subject != default:
        raise invalid("subject", FROZEN_ELSEWHERE.format(default))
    if item.lifecycle == WEAK and subject == default:
        raise invalid("subject", WEAK_THERE.format(default))
    return item._replace(subject=subject)


def _item(row: Any, *, is_batch: bool) -> Item:
    if not isinstance(row, dict):
        raise _malformed("associations", "objects")
    operation = row.get("opType") if is_batch else ""
    if is_batch and operation not in OPERATIONS:
        raise RegistryError(400, 400, f'"opType" takes one of {", ".join(OPERATIONS)}')
    if operation == DELETE:
        row = {name: row.get(name) for name in ("associationType", "cascadeLifecycle")}
    lifecycle, schema = row.get("lifecycle"), row.get("schema")
    if lifecycle is not None and lifecycle not in LIFECYCLES:
        raise RegistryError(400, 400, f'"lifecycle" takes one of {", ".join(LIFECYCLES)}')
    if not isinstance(schema, dict | None):
        raise _malformed("schema", "an object")
    kind = text_of(row, "associationType") or ""
    is_frozen, normalize = (_flag(row, each) for each in ("frozen", "normalize"))
    named = (str(operation), text_of(row, "subject"), kind, lifecycle, is_frozen, schema)
    return Item(*named, normalize is True, _flag(row, "cascadeLifecycle") is True)


def text_of(body: Json, name: str) -> str | None:
    """A text, which a number or a flag stands for too."""
    value = body.get(name)
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float | None):
        raise _malformed(name, "a text")
    return None if value is None else str(value)


def _flag(row: Json, name: str) -> bool | None:
    value = row.get(name)
    if isinstance(value, str) and value in ("true", "false"):
        return value == "true"
    if not isinstance(value, bool | None):
        raise _malformed(name, "true or false")
    return value


def _malformed(name: str, what: str) -> RegistryError:
    return RegistryError(400, 400, f'"{name}" takes {what}')


def invalid(name: str, detail: str) -> RegistryError:
    """What a property of an association says does not do."""
    return errors.invalid_association(name, detail)
