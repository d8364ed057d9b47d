"""Alters and deletes topics, by the requests of Kafka's admin clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from broker.asks import configs, topics
from broker.shell.asking import Asking, ask
from broker.shell.control.calls.records import check_answer
from broker.shell.control.routes import Call, RefusedError

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer


class NamedTopic(TypedDict):
    """The name of a topic."""

    topic: str


class AlteredTopic(NamedTopic):
    """A topic and its partitions, as they are now."""

    partitions: int


async def alter_topic(cluster: ClusterServer, call: Call) -> AlteredTopic:
    """Set and unset settings, then add partitions; each is checked before anything is changed. Errors: RefusedError."""
    name, body = call.words["topic"], call.body
    if name not in cluster.broker.metadata.topics:
        raise RefusedError(404, f"no such topic: {name:.100}")
    changes = {**body.get("config", {}), **dict.fromkeys(body.get("unset", ()))}
    with Asking(cluster) as asking:
        for only_check in (True, False):
            if changes:
                (row,) = await asking.ask(configs.alter(configs.TOPIC, {name: changes}, only_check=only_check))
                check_answer(row.error_code, f"topic {name}", row.error_message)
            if "partitions" in body:
                (grown,) = await asking.ask(topics.grow([name], body["partitions"], only_check=only_check))
                check_answer(grown.error_code, f"topic {name}", grown.error_message)
    return {"topic": name, "partitions": len(cluster.broker.metadata.topics[name].partitions)}


async def delete_topic(cluster: ClusterServer, call: Call) -> NamedTopic:
    """Delete a topic with its records. Errors: RefusedError."""
    name = call.words["topic"]
    (row,) = await ask(cluster, topics.delete([name]))
    check_answer(row.error_code, f"topic {name:.100}", row.error_message)
    return {"topic": name}
