"""How a quota is set by request."""

from __future__ import annotations

from core_broker import Client

from protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)


def alteration(key: str, value: float | None, **entity: str | None) -> AlterClientQuotasRequest:
    parts = [EntityData(entity_type=k.replace("_", "-"), entity_name=v) for k, v in entity.items()]
    op = OpData(key=key, value=value or 0.0, remove=value is None)
    entry = AlterClientQuotasRequestEntryData(entity=parts, ops=[op])
    return AlterClientQuotasRequest(entries=[entry], validate_only=False)


def set_quota(client: Client, key: str, value: float | None, **entity: str | None) -> None:
    answer = client.call(alteration(key, value, **entity))
    assert answer.entries[0].error_code == 0, answer
