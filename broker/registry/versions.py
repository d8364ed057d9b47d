"""A version of a subject: one schema as it was registered, and what names its content."""

from __future__ import annotations

from hashlib import md5
from typing import TYPE_CHECKING, Any

from broker.registry.records import AVRO, Unread, references_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.registry.records import Json, Reference


class Content:
    """What has an id: a schema in its canonical form, with its type, references, metadata and rules."""

    __slots__ = ("metadata", "references", "rule_set", "schema", "schema_type")

    def __init__(
        self,
        schema_type: str,
        schema: str,
        references: tuple[Reference, ...] = (),
        metadata: Json | None = None,
        rule_set: Json | None = None,
    ) -> None:
        self.schema_type = schema_type
        self.schema = schema
        self.references = references
        self.metadata = metadata
        self.rule_set = rule_set

    def digest(self) -> bytes:
        """16 bytes that name it: those of Confluent's registry of version 8, whose messages may carry them."""
        data = md5(_utf8(self.schema), usedforsecurity=False)
        for each in self.references:
            data.update(_utf8(each.name) + _utf8(each.subject) + (each.version & 0xFFFFFFFF).to_bytes(4, "big"))
        if self.metadata is not None:
            data.update(b"\x01" + _utf8("".join(_texts(self.metadata))))
        if self.rule_set is not None:
            data.update(b"\x01" + _utf8("".join(_rule_texts(self.rule_set))))
        return data.digest()

    def with_references(self, references: tuple[Reference, ...]) -> Content:
        """The same, with other references."""
        return Content(self.schema_type, self.schema, references, self.metadata, self.rule_set)

    def to_json(self) -> Json:
        """The fields of answers and records; AVRO is not named, as clients of any age expect."""
        shown: dict[str, Any] = {} if self.schema_type == AVRO else {"schemaType": self.schema_type}
        if self.references:
            shown["references"] = [each.to_json() for each in self.references]
        if self.metadata is not None:
            shown["metadata"] = self.metadata
        if self.rule_set is not None:
            shown["ruleSet"] = self.rule_set
        shown["schema"] = self.schema
        return shown


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _texts(value: Any) -> Iterator[str]:
    """Tags, properties and sensitive names, each of them sorted."""
    for part in ("tags", "properties", "sensitive"):
        found = value.get(part) or {}
        for key in sorted(found):
            yield key
            if part != "sensitive":
                yield from [found[key]] if part == "properties" else sorted(found[key])


def _rule_texts(rule_set: Json) -> Iterator[str]:
    """All that rules say, in the order in which Confluent's registry names them."""
    for part in ("migrationRules", "domainRules", "encodingRules"):
        for rule in rule_set.get(part) or ():
            yield from (rule[name] for name in ("name", "doc", "kind", "mode", "type") if rule.get(name) is not None)
            yield from rule.get("tags") or ()
            yield from (text for pair in (rule.get("params") or {}).items() for text in pair)
            yield from (rule[name] for name in ("expr", "onSuccess", "onFailure") if rule.get(name) is not None)
            yield "\x01" if rule.get("disabled") else ""
    yield str(rule_set.get("enableAt") or "")


def guid_of(data: bytes) -> str:
    """16 bytes as Java writes a UUID."""
    text = data.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Version:
    """A version of a subject. Made of a record and never changed: a deletion makes another.

    Its content and what names it are made when they are asked for.
    """

    __slots__ = ("_content", "_digest", "id", "is_deleted", "subject", "timestamp_ms", "version")

    def __init__(
        self,
        subject: str,
        version: int,
        number: int,
        content: Content | Unread,
        timestamp_ms: int = 0,
        *,
        is_deleted: bool = False,
    ) -> None:
        self.subject = subject
        self.version = version
        self.id = number
        self.is_deleted = is_deleted
        self.timestamp_ms = timestamp_ms  # of its record; 0: it has none yet
        self._content = content
        self._digest = b""

    @property
    def content(self) -> Content:
        """What has the id."""
        found = self._content
        if isinstance(found, Unread):
            found = self._content = Content(found.schema_type, found.schema)
        return found

    @property
    def digest(self) -> bytes:
        """The content's."""
        self._digest = self._digest or self.content.digest()
        return self._digest

    def has_text_of(self, other: Version) -> bool:
        """Whether both have the same schema, letter by letter."""
        mine, his = self._content, other._content
        if isinstance(mine, Unread) and isinstance(his, Unread) and mine.raw == his.raw:
            return True
        return self.content.schema == other.content.schema

    @property
    def references(self) -> tuple[Reference, ...]:
        """The content's."""
        return () if isinstance(self._content, Unread) else self._content.references

    @property
    def guid(self) -> str:
        """The digest, as Confluent's registry of version 8 writes it."""
        return guid_of(self.digest)

    def deleted(self, timestamp_ms: int = 0) -> Version:
        """The same, softly deleted."""
        kept = timestamp_ms or self.timestamp_ms
        return Version(self.subject, self.version, self.id, self._content, is_deleted=True, timestamp_ms=kept)

    def stands(self) -> Json:
        """When its record was written, and whether it is deleted."""
        if self.timestamp_ms:
            return {"ts": self.timestamp_ms, "deleted": self.is_deleted}
        return {"deleted": True} if self.is_deleted else {}

    def to_json(self) -> Json:
        """As it is answered."""
        shown = {"subject": self.subject, "version": self.version, "id": self.id, "guid": self.guid}
        return {**shown, **self.content.to_json(), **self.stands()}

    def to_value(self) -> Json:
        """As its record has it."""
        shown = {"subject": self.subject, "version": self.version, "id": self.id}
        return {**shown, **self.content.to_json(), "deleted": self.is_deleted}


def version_of(subject: str, version: int, value: Json | Unread, timestamp_ms: int = 0) -> Version:
    """What a record says. Errors: ValueError."""
    if isinstance(value, Unread):
        return Version(subject, version, value.number, value, timestamp_ms=timestamp_ms)
    content = Content(
        value.get("schemaType") or AVRO,
        value["schema"],
        references_of(value),
        value.get("metadata"),
        value.get("ruleSet"),
    )
    is_deleted = bool(value.get("deleted"))
    return Version(subject, version, value["id"], content, is_deleted=is_deleted, timestamp_ms=timestamp_ms)
