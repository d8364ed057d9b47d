"""The records of `_schemas`: their JSON forms, as Confluent's registry writes and reads them.

    key      {"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}
    value    {"subject":"orders-value","version":1,"id":1,"schema":"\\"string\\"","deleted":false}

A value may have "schemaType" (AVRO where it lacks), "references", "metadata", "ruleSet". CONFIG and MODE are keyed by
subject, or by none for the global one; an absent value takes the key away. DELETE_SUBJECT deletes all versions up to
one softly, CLEAR_SUBJECT drops those that are deleted. CONTEXT says that there is one. ASSOC associates a resource with
a subject; both are in its key. NOOP and kinds that are not known mean nothing.
A SCHEMA in that very form, without what is optional but a type, is taken apart no further than its head: ten thousand
of them are read at a start, of which a client may want one.
Source: what Confluent Platform 5 to 8 leave in the topic.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

SCHEMAS_TOPIC: Final = "_schemas"
SCHEMA, CONFIG, MODE, CONTEXT, ASSOC = "SCHEMA", "CONFIG", "MODE", "CONTEXT", "ASSOC"
DELETE_SUBJECT, CLEAR_SUBJECT = "DELETE_SUBJECT", "CLEAR_SUBJECT"
KINDS: Final = frozenset((SCHEMA, CONFIG, MODE, CONTEXT, ASSOC, DELETE_SUBJECT, CLEAR_SUBJECT))
AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
TYPES: Final = (JSON, PROTOBUF, AVRO)  # in the order in which they are answered
TENANT: Final = "default"
MAX_INT: Final = (1 << 31) - 1

Json = dict[str, Any]
_TEXT: Final = rb'("subject":"([^"\\\x00-\x1f]+)","version":([1-9]\d{0,8}),)'
_HEAD: Final = re.compile(rb"\{" + _TEXT + rb'"id":(\d{1,9}),(?:"schemaType":"([A-Z]+)",)?"schema":"').match
_LETTERS: Final = bytes(each for each in range(32, 127) if each not in b'"\\')  # that stand for themselves
_QUOTE: Final = b'\\"'
_new: Final = tuple.__new__
_TAIL: Final = b'","deleted":false}'
_read: Final = json.JSONDecoder().decode  # of bytes, json.loads would guess the encoding first


class Reference(NamedTuple):
    """What one schema calls a version of a subject."""

    name: str
    subject: str
    version: int

    def to_json(self) -> Json:
        """As answers and records have it."""
        return self._asdict()


class Unread(NamedTuple):
    """The value of a SCHEMA that is not deleted, with its text as it is in the record: the inside of a JSON text."""

    number: int
    schema_type: str
    raw: bytes

    @property
    def schema(self) -> str:
        """The text."""
        found: str = _read(f'"{self.raw.decode()}"')
        return found


class AssociationKey(NamedTuple):
    """What of a resource an association is about: the key of its record, beside the subject."""

    name: str
    namespace: str
    resource_type: str
    association_type: str

    def to_json(self) -> Json:
        """As the key has it."""
        return dict(zip(ASSOCIATION_KEY, self, strict=True))


ASSOCIATION_KEY: Final = ("resourceName", "resourceNamespace", "resourceType", "associationType")


class Record(NamedTuple):
    """One record, decoded; `value` None: a tombstone. Of a CONTEXT the subject is the context.

    association   of an ASSOC.
    """

    kind: str
    subject: str | None
    version: int
    value: Json | Unread | None
    association: AssociationKey | None = None


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """Key and value."""
    key: Json = {"keytype": record.kind}
    if record.kind == CONTEXT:
        key |= {"tenant": TENANT, "context": record.subject}
    elif record.association is not None:
        key |= {"tenant": TENANT, **record.association.to_json(), "subject": record.subject}
    elif record.subject is not None:
        key["subject"] = record.subject
    if record.kind == SCHEMA:
        key["version"] = record.version
    key["magic"] = 1 if record.kind == SCHEMA else 0
    assert not isinstance(record.value, Unread)  # it is none of ours
    return dump(key), None if record.value is None else dump(record.value)


def decode(key: bytes | None, value: bytes | None) -> Record | None:
    """A record; None: one that means nothing. Errors: ValueError: it is none of Confluent's."""
    if key is None:
        raise ValueError("it has no key")
    found = None if value is None else plain(key, value)
    if found is not None:
        return Record(SCHEMA, *found)
    try:
        named = _read(key.decode())
        given = None if value is None else _read(value.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(named, dict) or not (given is None or isinstance(given, dict)):
        raise ValueError("it is no JSON object")
    kind, version = named.get("keytype"), named.get("version", 0)
    subject = named.get("context" if kind == CONTEXT else "subject")
    if kind not in KINDS:
        return None
    if not (subject is None or isinstance(subject, str)):
        raise ValueError('"subject" is no text')
    if kind == SCHEMA:
        if subject is None or type(version) is not int or not 0 < version <= MAX_INT:
            raise ValueError('a SCHEMA has "subject" and "version"')
        if given is not None:
            _check_schema(given)
    elif kind == ASSOC:
        return _association(named, subject, given)
    return Record(kind, subject, version, given)


def _association(named: Json, subject: str | None, given: Json | None) -> Record | None:
    """An ASSOC; None: of another tenant. Errors: ValueError."""
    texts = [named.get(each) for each in ASSOCIATION_KEY]
    if subject is None or not all(isinstance(each, str) for each in texts):
        raise ValueError(f'an ASSOC has "subject", {", ".join(ASSOCIATION_KEY)}')
    if given is not None:
        if not isinstance(given.get("guid"), str) or not isinstance(given.get("resourceId"), str):
            raise ValueError('an ASSOC\'s value has "guid" and "resourceId"')
        if given.get("lifecycle") not in ("STRONG", "WEAK") or type(given.get("createTs") or 0) is not int:
            raise ValueError('an ASSOC\'s value has a "lifecycle", and perhaps "createTs"')
    return (
        Record(ASSOC, subject, 0, given, AssociationKey(*map(str, texts)))
        if named.get("tenant", TENANT) == TENANT
        else None
    )


def plain(key: bytes, value: bytes) -> tuple[str, int, Unread] | None:
    """Subject, version and value of a SCHEMA of the usual form; None: the record has to be looked at more closely."""
    head = _HEAD(value)
    if head is None or not value.endswith(_TAIL):
        return None
    named, subject, version, number, schema_type = head.groups()
    if key != b'{"keytype":"SCHEMA",' + named + b'"magic":1}':
        return None
    raw = value[head.end() : -len(_TAIL)]
    if not _is_plain(raw):
        return None
    unread = _new(Unread, (int(number), AVRO if schema_type is None else schema_type.decode(), raw))
    return subject.decode(), int(version), unread


def _is_plain(raw: bytes) -> bool:
    """Whether the inside of a JSON text has but printable ASCII, quotes and ends of lines: 2 us, reading takes 10."""
    rest = raw.translate(None, _LETTERS)
    quotes = len(rest) // 2
    if rest == _QUOTE * quotes and raw.count(_QUOTE) == quotes:
        return True  # as Avro and JSON have it
    rest = raw.replace(_QUOTE, b" ").replace(b"\\n", b" ")
    return not rest.translate(None, _LETTERS)


def _check_schema(value: Json) -> None:
    """Errors: ValueError."""
    if type(value.get("id")) is not int or not 0 <= value["id"] <= MAX_INT or not isinstance(value.get("schema"), str):
        raise ValueError('a SCHEMA\'s value has "id" and "schema"')
    if not isinstance(value.get("schemaType") or AVRO, str):
        raise ValueError('"schemaType" is no text')
    references_of(value)


def references_of(given: Json) -> tuple[Reference, ...]:
    """The references that a record or a request names. Errors: ValueError."""
    rows = given.get("references") or ()
    if not isinstance(rows, list | tuple):
        raise ValueError('"references" takes a list')
    found = []
    for row in rows:
        if not isinstance(row, dict):
            raise ValueError('"references" takes objects')
        name, subject, version = row.get("name"), row.get("subject"), row.get("version")
        if not isinstance(name, str) or not isinstance(subject, str) or type(version) is not int:
            raise ValueError('a reference has "name", "subject" and "version"')
        found.append(Reference(name, subject, version))
    return tuple(found)


def dump(value: object) -> bytes:
    """JSON as Confluent's registry writes it: without spaces, text as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
