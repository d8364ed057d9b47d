"""Quotas of files, set as any client sets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.shell.local_client import LocalClient
from protocol.errors import ErrorCode
from protocol.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasRequestEntryData, EntityData, OpData

if TYPE_CHECKING:
    from broker.load.items import QuotaItem
    from broker.shell.cluster_server import ClusterServer

VERSION = 1


async def alter_quotas(
    cluster: ClusterServer, quotas: list[QuotaItem], *, validate_only: bool = False
) -> list[tuple[QuotaItem, str]]:
    """Set quotas, or only see whether they can be set. Returns those that were refused, and why."""
    if not quotas:
        return []
    entries = [
        AlterClientQuotasRequestEntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in quota.entity.items()],
            ops=[OpData(key=key, value=value, remove=False) for key, value in quota.rates.items()],
        )
        for quota in quotas
    ]
    client = LocalClient(cluster.broker, cluster.config)
    try:
        answer = await client.call(AlterClientQuotasRequest(entries=entries, validate_only=validate_only), VERSION)
    finally:
        client.close()
    return [
        (quota, row.error_message or ErrorCode(row.error_code).name)
        for quota, row in zip(quotas, answer.entries, strict=True)
        if row.error_code
    ]
