"""Client quotas (KIP-546): by user, client id, both, or address.

DescribeClientQuotas  A filter: each component names a type of entity and what its name must be.
AlterClientQuotas     Sets and removes; an entity changes whole or not at all, all entities in one batch.

Behaviour: an address is written in digits, or is "localhost": names are not looked up.
Differs:   if a request of AlterClientQuotas names an entity twice, nothing of it is changed; Kafka answers the same and
           changes the first.
Source:    Kafka's ClientQuotaControlManager, ClientQuotasImage and QuotaConfig.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Protocol

from broker.base.context import Context
from broker.cluster.client_records import Entity, entity_of, quota_record
from broker.handlers.admin_view import after_metadata, refuse, repeated
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClientQuotasResponseEntryData,
    EntityData,
    ValueData,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
EXACT, DEFAULT, SPECIFIED = 0, 1, 2

# key -> the largest whole number, or None where fractions are allowed
_INT_MAX, _LONG_MAX = (1 << 31) - 1, (1 << 63) - 1

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.runtime import Shard

_CLIENT_KEYS: dict[str, int | None] = {
    "producer_byte_rate": _LONG_MAX,
    "consumer_byte_rate": _LONG_MAX,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_IP_KEYS: dict[str, int | None] = {"connection_creation_rate": _INT_MAX}


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def metadata_shard(self) -> Shard: ...


def describe_client_quotas(broker: View, ctx: Context, request: DescribeClientQuotasRequest) -> Decision:
    """Answer the entities that match every component. Errors: INVALID_REQUEST, UNSUPPORTED_VERSION: unknown type."""
    _check_filter(request.components)
    return Decision(
        DescribeClientQuotasResponse(
            error_message=None,
            entries=[
                DescribeClientQuotasResponseEntryData(
                    entity=_told(entity), values=[ValueData(key=key, value=value) for key, value in values.items()]
                )
                for entity, values in broker.metadata.clients.quotas.items()
                if _matches(dict(entity), request)
            ],
        )
    )


def _check_filter(components: list[ComponentData]) -> None:
    seen: set[str] = set()
    for component in components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in seen:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
            )
        seen.add(kind)
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind:.249}")
        if component.match_type not in (EXACT, DEFAULT, SPECIFIED):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}")
        if (component.match_type == EXACT) != (match is not None):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "An exact match, and no other, needs a string to match.")
    if IP in seen and len(seen) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "An IP component cannot be combined with a user or client id component."
        )


def _matches(entity: dict[str, str | None], request: DescribeClientQuotasRequest) -> bool:
    components = request.components
    if request.strict and len(entity) != len(components):
        return False
    return all(
        component.entity_type in entity
        and (component.match_type == SPECIFIED or entity[component.entity_type] == component.match)
        for component in components
    )


def alter_client_quotas(broker: View, ctx: Context, request: AlterClientQuotasRequest) -> Decision:
    """Apply the valid changes; the others get INVALID_REQUEST."""
    entries = [
        (entity_of([(part.entity_type, part.entity_name) for part in entry.entity]), entry) for entry in request.entries
    ]
    twice = repeated(entity for entity, _ in entries)
    records: list[bytes] = []
    results: dict[Entity, AlterClientQuotasResponseEntryData] = {}
    for entity, entry in entries:
        results[entity] = AlterClientQuotasResponseEntryData(error_message=None, entity=_told(entity))
        try:
            if entity in twice:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The entity is named twice.")
            records += _changes(broker.metadata.clients.quotas.get(entity, {}), entity, entry)
        except KafkaError as error:
            refuse(results[entity], error)
    response = AlterClientQuotasResponse(entries=list(results.values()))
    return after_metadata(broker, response, () if request.validate_only else records)


def _changes(present: dict[str, float], entity: Entity, entry: AlterClientQuotasRequestEntryData) -> list[bytes]:
    keys = _keys_of(dict(entity))
    if repeated(op.key for op in entry.ops):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A quota key is given twice for this entity.")
    records = []
    for op in entry.ops:
        if op.remove:
            if op.key in present:
                records.append(quota_record(entity, op.key, None))
            continue
        _check_value(keys, op.key, op.value)
        if present.get(op.key) != op.value:
            records.append(quota_record(entity, op.key, op.value))
    return records


def _keys_of(entity: dict[str, str | None]) -> dict[str, int | None]:
    """The keys that an entity may have. Errors: INVALID_REQUEST."""
    if not entity:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {kind:.249}")
        if name == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Empty {kind} not supported")
    if IP not in entity:
        return _CLIENT_KEYS
    if len(entity) > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "An IP entity cannot be combined with a user or client id.")
    if not _is_address(entity[IP]):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{entity[IP]:.249} is not a valid IP or resolvable host.")
    return _IP_KEYS


def _is_address(text: str | None) -> bool:
    if text is None or text == "localhost":
        return True
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _check_value(keys: dict[str, int | None], key: str, value: float) -> None:
    if key not in keys:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key:.249}")
    if value <= 0.0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    largest = keys[key]
    if largest is None:
        return
    if value > largest:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Proposed value for {key} is too large.")
    if value % 1.0 > 1e-6:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} cannot be a fractional value.")


def _told(entity: Entity) -> list[EntityData]:
    return [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
