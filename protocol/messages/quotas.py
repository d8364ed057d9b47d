"""Messages that describe and change the quotas of clients (KIP-546)."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Float64, Int8, Int16, Int32, String


@nested
class ComponentData(Message):
    entity_type: str = field(String)
    match_type: int = field(Int8)
    match: str | None = field(String, nullable="0+")


@message(api_key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(Message):
    """Ask for quotas by what they apply to: each component names a type of entity and what its name must be."""

    components: list[ComponentData] = field(Array(ComponentData))
    strict: bool = field(Bool)


@nested
class EntityData(Message):
    entity_type: str = field(String)
    entity_name: str | None = field(String, nullable="0+")


@nested
class ValueData(Message):
    key: str = field(String)
    value: float = field(Float64)


@nested
class DescribeClientQuotasResponseEntryData(Message):
    entity: list[EntityData] = field(Array(EntityData))
    values: list[ValueData] = field(Array(ValueData))


@message(api_key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(Message):
    """The quotas of each entity that matches."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    entries: list[DescribeClientQuotasResponseEntryData] | None = field(
        Array(DescribeClientQuotasResponseEntryData), nullable="0+"
    )


@nested
class OpData(Message):
    key: str = field(String)
    value: float = field(Float64)
    remove: bool = field(Bool)


@nested
class AlterClientQuotasRequestEntryData(Message):
    entity: list[EntityData] = field(Array(EntityData))
    ops: list[OpData] = field(Array(OpData))


@message(api_key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Message):
    """Set and remove quotas."""

    entries: list[AlterClientQuotasRequestEntryData] = field(Array(AlterClientQuotasRequestEntryData))
    validate_only: bool = field(Bool)


@nested
class AlterClientQuotasResponseEntryData(Message):
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    entity: list[EntityData] = field(Array(EntityData))


@message(api_key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Message):
    """One result an entity."""

    throttle_time_ms: int = field(Int32)
    entries: list[AlterClientQuotasResponseEntryData] = field(Array(AlterClientQuotasResponseEntryData))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case DescribeClientQuotasRequest():
            return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
        case AlterClientQuotasRequest():
            return AlterClientQuotasResponse(
                entries=[
                    AlterClientQuotasResponseEntryData(error_code=code, error_message=message, entity=entry.entity)
                    for entry in request.entries
                ]
            )
    raise TypeError(f"not a request of this family: {request!r}")
