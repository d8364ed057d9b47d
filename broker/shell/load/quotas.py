"""Quotas of files, set as any client sets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.asks.ask import label
from broker.asks.quotas import alter
from broker.shell.asking import ask

if TYPE_CHECKING:
    from broker.load.items import QuotaItem
    from broker.shell.cluster_server import ClusterServer


async def alter_quotas(
    cluster: ClusterServer, quotas: list[QuotaItem], *, validate_only: bool = False
) -> list[tuple[QuotaItem, str]]:
    """Set quotas, or only see whether they can be set. Returns those that were refused, and why."""
    if not quotas:
        return []
    changes = [(quota.entity.items(), quota.rates) for quota in quotas]
    rows = await ask(cluster, alter(changes, only_check=validate_only))
    return [
        (quota, row.error_message or label(row.error_code))
        for quota, row in zip(quotas, rows, strict=True)
        if row.error_code
    ]
