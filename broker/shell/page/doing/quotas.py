"""Lists, sets and removes quotas of clients, in the words of a load file: user, client_id or ip, and their rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from broker.shell.control.calls.records import check_answer
from broker.shell.control.routes import Call, RefusedError
from broker.shell.local_client import LocalClient
from protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

VERSION: Final = 1
ENTITIES: Final = {"user": "user", "client_id": "client-id", "ip": "ip"}
DEFAULT: Final = "<default>"  # stands for all that have none of their own


class QuotaRow(TypedDict):
    """Rates of an entity: user, client_id or ip -> name."""

    entity: dict[str, str]
    rates: dict[str, float]


async def list_quotas(cluster: ClusterServer, call: Call) -> list[QuotaRow]:
    """Each entity with its rates."""
    client = LocalClient(cluster.broker, cluster.config)
    try:
        answer = await client.call(DescribeClientQuotasRequest(components=[], strict=False), VERSION)
    finally:
        client.close()
    check_answer(answer.error_code, "quotas", answer.error_message)
    words = {kind: word for word, kind in ENTITIES.items()}
    return [
        {
            "entity": {words[each.entity_type]: _shown(each.entity_name) for each in entry.entity},
            "rates": {each.key: each.value for each in entry.values},
        }
        for entry in answer.entries or ()
    ]


def _shown(name: str | None) -> str:
    return DEFAULT if name is None else name


async def alter_quotas(cluster: ClusterServer, call: Call) -> list[QuotaRow]:
    """Set and remove rates of one entity. Returns all quotas. Errors: RefusedError."""
    body = call.body
    unknown = body["entity"].keys() - ENTITIES.keys()
    if unknown or not body["entity"]:
        raise RefusedError(400, f'"entity" takes {", ".join(ENTITIES)}')
    entity = [
        EntityData(entity_type=ENTITIES[word], entity_name=None if name == DEFAULT else name)
        for word, name in body["entity"].items()
    ]
    ops = [OpData(key=key, value=float(value), remove=False) for key, value in body.get("rates", {}).items()]
    ops += [OpData(key=key, value=0.0, remove=True) for key in body.get("remove", ())]
    request = AlterClientQuotasRequest(
        entries=[AlterClientQuotasRequestEntryData(entity=entity, ops=ops)], validate_only=False
    )
    client = LocalClient(cluster.broker, cluster.config)
    try:
        (row,) = (await client.call(request, VERSION)).entries
    finally:
        client.close()
    check_answer(row.error_code, "quota", row.error_message)
    return await list_quotas(cluster, call)
