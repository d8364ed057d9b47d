"""Describes a group of this cluster, or of the one that a proxy stands before; of ours also since when who has what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.asks import groups
from broker.shell.control.routes import RefusedError

if TYPE_CHECKING:
    from broker.asks.rows import GroupDetails
    from broker.shell.asking import Asking
    from broker.shell.cluster_server import ClusterServer


async def describe(cluster: ClusterServer, asking: Asking, group: str) -> GroupDetails:
    """A group without its offsets; one that does not exist is Dead.

    Errors: RefusedError: it has no coordinator. KafkaError: the coordinator loads. StorageError, OSError.
    """
    if cluster.broker.upstream is not None:
        return await asking.ask(groups.describe(group, await asking.ask(groups.type_of(group))))
    found = await asking.ask(groups.describe(group, _own_type(cluster, group)))
    if found["type"] == "consumer":
        _add_epochs(cluster, found)
    return found


def _own_type(cluster: ClusterServer, group: str) -> str:
    """Errors: as describe."""
    own = cluster.broker.groups
    node_id, shard = own.coordinator_of(group), own.of(group)
    if all(node.node_id != node_id for node in cluster.broker.nodes.up):
        raise RefusedError(409, f"group {group:.100} has no coordinator: no broker leads {shard.name}")
    shard.require()
    return getattr(shard.machine.groups.get(group), "group_type", "classic")


def _add_epochs(cluster: ClusterServer, answer: GroupDetails) -> None:
    """The epoch at which each partition was assigned, which no request tells."""
    machine = cluster.broker.groups.of(answer["group"]).machine
    group = None if machine is None else machine.groups.get(answer["group"])
    topics = cluster.broker.metadata.topics_by_id
    since = {
        (f"{topics[topic_id].name}-{index}", member_id): epoch
        for member_id, member in ({} if group is None else group.members).items()
        for topic_id, epochs in member.current.assigned.items()
        if topic_id in topics
        for index, epoch in epochs.items()
    }
    for row in answer["assignments"]:
        row["since_epoch"] = since.get((row["partition"], row["member"]), -1)
