"""What the registry has a process of its own find out about schemas, because it may take long: a Job and its Checked.

A handler of the registry is a function (state, ask) -> Decision, or a generator that yields Jobs, is sent what was
found out and returns its Decision. Jobs hold texts alone, so they can be sent anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from hashlib import md5
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.registry.contexts import beside
from broker.registry.errors import invalid_schema
from broker.registry.releases import DEFAULT_RELEASE, EIGHT, SEVEN
from broker.registry.versions import guid_of

if TYPE_CHECKING:
    from broker.registry.records import Json, Record, Reference
    from broker.registry.state import RegistryState
    from broker.registry.versions import Content, Version

TAGS_WITHIN: Final = "confluent:tags"
MOST_REFERENCES: Final = 200  # of a schema and of what it refers to


class Source(NamedTuple):
    """A schema as a job has it.

    references   (name, text) of all that it refers to; what one of them refers to comes before it.
    version      of its subject; 0: it has none yet.
    """

    schema_type: str
    schema: str
    references: tuple[tuple[str, str], ...] = ()
    version: int = 0


class Tag(NamedTuple):
    """What changes in the tags of a record, or a field; `path`: shop.Order.price."""

    path: str
    is_record: bool
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def applied(self, tags: list[str]) -> list[str]:
        """The tags that are left of those, and those that are added."""
        kept = [each for each in tags if each not in self.removed]
        return list(dict.fromkeys((*kept, *self.added)))

    def to_json(self) -> Json:
        """Those of a schema, as an answer tells them."""
        entity = {"entityPath": self.path, "entityType": "sr_record" if self.is_record else "sr_field"}
        return {"schemaEntity": entity, "tags": list(self.added)}


def tags_within(text: str) -> tuple[Tag, ...]:
    """What a Job of the form TAGS_WITHIN has found."""
    return tuple(Tag(path, is_record, tuple(tags), ()) for path, is_record, tags in json.loads(text))


class Job(NamedTuple):
    """One question.

    form       what is asked for instead of the canonical form: Confluent's word of the parameter `format`, or
               TAGS_WITHIN for a list of [path, whether it is a record, tags].
    normalize  ask for the normalized form.
    previous   oldest first.
    level      how it must fit them; "NONE": it need not.
    validates  hold it to what the config validateFields asks for: imports that are there, no field in "$$".
    is_new     hold it to what Avro asks of a new schema: names and defaults.
    tags       what changes in its tags before anything else.
    is_lenient  whether JSON Schemas are compared by the policy LENIENT.
    is_lax      whether a JSON Schema may be any JSON, as the mode IMPORT takes it.
    """

    schema: Source
    form: str = ""
    normalize: bool = False
    previous: tuple[Source, ...] = ()
    level: str = "NONE"
    validates: bool = False
    is_new: bool = False
    tags: tuple[Tag, ...] = ()
    is_lenient: bool = False
    is_lax: bool = False


class Difference(NamedTuple):
    """One thing by which a schema does not fit an earlier one.

    kind      Confluent's word: READER_FIELD_MISSING_DEFAULT_VALUE.
    path      where in the schema.
    message   as it is answered.
    version   of the earlier schema.
    """

    kind: str
    path: str
    message: str
    version: int = 0


class Checked(NamedTuple):
    """What was found out.

    text          the schema in the form that was asked for.
    messages      why it does not fit, as Confluent answers it; none: it fits.
    differences   the same for those who want to look.
    fields        the names of its fields, where they are validated.
    """

    text: str
    messages: list[str]
    differences: list[Difference]
    fields: tuple[str, ...] = ()


class SchemaFaultError(Exception):
    """What is given is no schema; the message says where and why.

    is_of_new   it would be one, but for what is asked of a new schema alone (Job.is_new).
    """

    is_of_new = False


def job_of(given: Any) -> Job:
    """A Job from the lists that JSON makes of it."""
    schema, form, normalize, previous, level, validates, is_new, tags, is_lenient, is_lax = given
    rows = tuple(Tag(path, is_record, tuple(added), tuple(removed)) for path, is_record, added, removed in tags)
    sources = tuple(_source(each) for each in previous)
    return Job(_source(schema), form, normalize, sources, level, validates, is_new, rows, is_lenient, is_lax)


def _source(given: Any) -> Source:
    schema_type, schema, references, version = given
    return Source(schema_type, schema, tuple((name, text) for name, text in references), version)


class Server(NamedTuple):
    """What a registry says of itself: its cluster, and the release that it answers as (`registry.as`)."""

    cluster_id: str = ""
    release: str = DEFAULT_RELEASE

    @property
    def is_of_7(self) -> bool:
        """Whether its answers have no field that came with 8.0."""
        return self.release == SEVEN

    @property
    def is_of_8(self) -> bool:
        """Whether its answers name AVRO as a type, and a subject and version that have an id."""
        return self.release == EIGHT


UNNAMED: Final = Server()


class Ask(NamedTuple):
    """One request of the registry; `drawn`: random bytes, where its route draws them."""

    words: dict[str, str]
    query: dict[str, str]
    body: Json
    server: Server = UNNAMED
    drawn: bytes = b""

    def flag(self, name: str) -> bool:
        """A parameter that is true or false."""
        return self.query.get(name, "").lower() == "true"

    def values(self, name: str) -> list[str]:
        """Those of a parameter that may be given several times."""
        return self.query[name].split("\0") if name in self.query else []

    def guid(self, name: str) -> str:
        """An id of something that the request makes, in the form of a UUID; of each name another one."""
        return guid_of(md5(self.drawn + name.encode(), usedforsecurity=False).digest())


class Decision(NamedTuple):
    """What a request writes, in this order, and what is answered once that is durable."""

    answer: Any
    records: tuple[Record, ...] = ()


Steps = Generator[Job, "Checked | SchemaFaultError", Decision]
Part = Callable[["RegistryState"], Decision | Steps]
# What a request yields whose parts are decided and written one after the other; it is sent the answer of each.
Parts = Generator[Part, Any, Any]


def source_of(
    state: RegistryState, content: Content, subject: str, version: int = 0, *, deleted: bool = True
) -> Source:
    """A schema of a subject with all that it refers to; without `deleted` to what is not deleted.

    Errors: RegistryError: one of them is not there.
    """
    found: dict[str, str] = {}
    _gather(state, subject, content.references, found, set(), deleted)
    return Source(content.schema_type, content.schema, tuple(found.items()), version)


def source_of_version(state: RegistryState, version: Version) -> Source:
    """A version with all that it refers to. Errors: as `source_of`."""
    return source_of(state, version.content, version.subject, version.version)


def _gather(
    state: RegistryState,
    subject: str,
    references: tuple[Reference, ...],
    found: dict[str, str],
    open_: set[tuple[str, int]],
    deleted: bool,
) -> None:
    for each in references:
        if each.name in found:
            continue
        referred = beside(subject, each.subject)
        row = state.get(referred, each.version, deleted=deleted)
        if row is None:
            raise invalid_schema(f'No schema reference found for subject "{referred}" and version {each.version}')
        key = (row.subject, row.version)
        if key in open_:
            raise invalid_schema(f'Version {row.version} of subject "{row.subject}" refers to itself')
        if len(found) >= MOST_REFERENCES:
            raise invalid_schema(f"More than {MOST_REFERENCES} references")
        _gather(state, row.subject, row.content.references, found, {*open_, key}, deleted)
        found.setdefault(each.name, row.content.schema)
