"""Lists, sets and removes quotas of clients, in the words of a load file: user, client_id or ip, and their rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from broker.asks import quotas
from broker.shell.asking import ask
from broker.shell.control.calls.records import check_answer
from broker.shell.control.routes import Call, RefusedError

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

ENTITIES: Final = {"user": "user", "client_id": "client-id", "ip": "ip"}
DEFAULT: Final = "<default>"  # stands for all that have none of their own


class QuotaRow(TypedDict):
    """Rates of an entity: user, client_id or ip -> name."""

    entity: dict[str, str]
    rates: dict[str, float]


async def list_quotas(cluster: ClusterServer, call: Call) -> list[QuotaRow]:
    """Each entity with its rates."""
    words = {kind: word for word, kind in ENTITIES.items()}
    return [
        {
            "entity": {words[each.entity_type]: _shown(each.entity_name) for each in entry.entity},
            "rates": {each.key: each.value for each in entry.values},
        }
        for entry in await ask(cluster, quotas.describe())
    ]


def _shown(name: str | None) -> str:
    return DEFAULT if name is None else name


async def alter_quotas(cluster: ClusterServer, call: Call) -> list[QuotaRow]:
    """Set and remove rates of one entity. Returns all quotas. Errors: RefusedError."""
    body = call.body
    unknown = body["entity"].keys() - ENTITIES.keys()
    if unknown or not body["entity"]:
        raise RefusedError(400, f'"entity" takes {", ".join(ENTITIES)}')
    entity = [(ENTITIES[word], None if name == DEFAULT else name) for word, name in body["entity"].items()]
    rates = {key: float(value) for key, value in body.get("rates", {}).items()}
    (row,) = await ask(cluster, quotas.alter([(entity, {**rates, **dict.fromkeys(body.get("remove", ()))})]))
    check_answer(row.error_code, "quota", row.error_message)
    return await list_quotas(cluster, call)
