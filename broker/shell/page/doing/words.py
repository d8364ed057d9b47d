"""The words that forms complete: APIs, errors, operations and resources of ACLs, rates of quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.load.fields import ENTITIES, OPERATIONS, RATES, RESOURCES
from broker.shell.control.routes import Call
from protocol.api import ApiKey, api_name
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer


async def list_words(cluster: ClusterServer, call: Call) -> dict[str, list[str]]:
    """Each list by its name."""
    return {
        "apis": sorted(api_name(key) for key in ApiKey),
        "errors": sorted(code.name for code in ErrorCode if code != ErrorCode.NONE),
        "operations": list(OPERATIONS),
        "resources": list(RESOURCES),
        "rates": list(RATES),
        "entities": list(ENTITIES),
    }
