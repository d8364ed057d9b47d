"""One association: that a resource's keys or values are described by a subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.registry.records import ASSOC, TENANT, AssociationKey, Record

if TYPE_CHECKING:
    from broker.registry.records import Json

STRONG, WEAK = "STRONG", "WEAK"
LIFECYCLES: Final = (STRONG, WEAK)
KEY, VALUE = "key", "value"
TOPIC: Final = "topic"  # the one type of resources


class Association(NamedTuple):
    """An association, as its record has it.

    resource        name, namespace and type of the resource, and whether it is of its keys or values.
    subject      as it is stored.
    created_ms   when its first record was written, updated_ms its last; 0: it has none yet.
    """

    resource: AssociationKey
    subject: str
    guid: str
    resource_id: str
    lifecycle: str
    is_frozen: bool
    created_ms: int = 0
    updated_ms: int = 0

    @property
    def key(self) -> tuple[AssociationKey, str]:
        """What its record is known by, and in which order associations are answered."""
        return self.resource, self.subject

    @property
    def kind(self) -> str:
        """`key` or `value`."""
        return self.resource.association_type

    def to_info(self) -> Json:
        """What a change answers of it; frozen is said where the lifecycle does not say it."""
        shown: Json = {"subject": self.subject, "associationType": self.kind, "lifecycle": self.lifecycle}
        return shown if self.is_frozen == (self.lifecycle == STRONG) else {**shown, "frozen": self.is_frozen}

    def to_json(self) -> Json:
        """What a list answers of it."""
        times = {"createTs": self.created_ms, "updateTs": self.updated_ms}
        named = {"guid": self.guid, **_resource(self.resource, self.resource_id)}
        return {**self.to_info(), **named, **{name: ms for name, ms in times.items() if ms}}

    def record(self) -> Record:
        """What writes it. When it was made is said of one that is changed: the log's cleaner drops its first record."""
        value: dict[str, Any] = {
            "guid": self.guid,
            "tenant": TENANT,
            **_resource(self.resource, self.resource_id),
            "associationType": self.kind,
            "subject": self.subject,
            "lifecycle": self.lifecycle,
            "frozen": self.is_frozen,
            **({"createTs": self.created_ms} if self.created_ms else {}),
        }
        return Record(ASSOC, self.subject, 0, value, self.resource)

    def tombstone(self) -> Record:
        """What takes it away."""
        return Record(ASSOC, self.subject, 0, None, self.resource)


def association_of(record: Record, created_ms: int, updated_ms: int) -> Association:
    """What a record says, which has a value."""
    value = record.value
    assert record.association is not None
    assert record.subject is not None
    assert isinstance(value, dict)
    is_frozen = value.get("frozen") is True
    named = (record.association, record.subject, value["guid"], value["resourceId"], value["lifecycle"])
    return Association(*named, is_frozen, created_ms, updated_ms)


def _resource(resource: AssociationKey, resource_id: str) -> Json:
    return {
        "resourceName": resource.name,
        "resourceNamespace": resource.namespace,
        "resourceId": resource_id,
        "resourceType": resource.resource_type,
    }
