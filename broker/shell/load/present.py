"""What of a load is in the cluster already, before anything of it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.shell.control.calls.groups import committed
from broker.shell.control.routes import Call, RefusedError

if TYPE_CHECKING:
    from broker.load.items import Load, Where
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.load.schemas import Schemas

Present = dict[str, list[str]]


async def find_present(cluster: ClusterServer, load: Load, schemas: Schemas | None) -> Present:
    """Names of topics, groups with offsets, users, quotas and subjects that are there, by kind."""
    metadata = cluster.broker.metadata
    users = {*metadata.clients.credentials}
    subjects = set() if schemas is None else await schemas.subjects()
    quotas = {entity_name(dict(entity)) for entity in metadata.clients.quotas}
    return {
        "topic": [each.name for each in load.topics if each.name in metadata.topics],
        "group": [each.name for each in load.groups if await _has_offsets(cluster, each.name)],
        "user": [each.name for each in load.users if each.name in users],
        "quota": [name for each in load.quotas if (name := entity_name(each.entity)) in quotas],
        "subject": [each.subject for each in load.schemas if each.subject in subjects],
    }


def places(load: Load) -> dict[str, dict[str, Where]]:
    """Where the names of each kind are in the files."""
    return {
        "topic": {each.name: each.where for each in load.topics},
        "group": {each.name: each.where for each in load.groups},
        "user": {each.name: each.where for each in load.users},
        "quota": {entity_name(each.entity): each.where for each in load.quotas},
        "subject": {each.subject: each.where for each in reversed(load.schemas)},
    }


def entity_name(entity: dict[str, str | None]) -> str:
    """An entity of quotas in words."""
    return ", ".join(f"{kind} {'<default>' if name is None else name}" for kind, name in sorted(entity.items()))


async def _has_offsets(cluster: ClusterServer, group: str) -> bool:
    try:
        return bool(await committed(cluster, Call({"group": group}, {}, {})))
    except RefusedError:  # such as a group of another type
        return True
