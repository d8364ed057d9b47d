"""Makes the event of a fault: the cluster really changes, so that every later answer agrees with it.

| event             | what happens                                                                           |
|-------------------|----------------------------------------------------------------------------------------|
| rebalance         | the group that the request names: as broker/coordinator/groups/forced.py says          |
| expel_member      | the member that sends the request is gone, as after its session's timeout              |
| expire_offsets    | the offsets of the group are gone, if it has no members (KIP-211)                      |
| move_coordinator  | another broker leads the partition that holds the group or transactional id            |
| move_leader       | another broker leads each partition that the request names                             |
| restart           | the cluster begins again with what a restart finds; connections are cut, faults go on  |
| abort_transaction | the open transaction is aborted, as after its timeout                                  |
| fence_producer    | another producer takes the transactional id (KIP-98): this one is fenced               |
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

from broker.asks import groups
from broker.asks.ask import AnswerError
from broker.base.context import Context
from broker.base.placement import shard_index
from broker.cluster.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from broker.coordinator.transactions.transaction import ONGOING
from broker.journal.naming import member_of
from broker.shell.asking import ask
from broker.shell.cluster_plan import ClusterRefusedError
from broker.shell.control.calls import group_verbs
from broker.shell.control.routes import Call, RefusedError
from broker.shell.local_client import LocalClient
from protocol.api import api_label
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.reassign import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ElectLeadersRequestTopicPartitions,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.transactions import InitProducerIdRequest

if TYPE_CHECKING:
    from broker.faults.fault import Fault
    from broker.faults.named import Met
    from broker.shell.cluster_server import ClusterServer

MADE: Final = "made"
INIT_VERSION: Final = 4  # below it a producer is fenced by another error
INIT_TRIES: Final = 200  # while a transaction of the producer before is being aborted
AGAIN_S: Final = 0.001
TIMEOUT_MS: Final = 60_000  # of the producer that takes an id
PREFERRED: Final = 0
KEPT: Final = 1000

PartitionKey = tuple[str, int]  # topic and partition


class NoEventError(Exception):
    """The event cannot be made; the text says why."""


async def make(cluster: ClusterServer, fault: Fault) -> None:
    """Make the event of a fault, note what came of it, and let the request or its reply go."""
    broker, event = cluster.broker, fault.values["event"]
    try:
        if fault.met is None:
            raise NoEventError("the request cannot be read")
        await EVENTS[event](cluster, fault.met)
        outcome = MADE
    except (NoEventError, RefusedError, ClusterRefusedError, AnswerError, KafkaError) as error:
        outcome = str(error) or type(error).__name__
    except (ConnectionError, TimeoutError) as error:
        outcome = f"the cluster did not answer: {error or type(error).__name__}"
    fault.outcome = outcome
    api = "" if fault.met is None else api_label(fault.met.api_key)
    cluster.events.append(
        {
            "fault": fault.name,
            "event": event,
            "when": fault.values["when"],
            "api": api,
            "outcome": outcome,
            "at_ms": cluster.clock.now_ms(),
        }
    )
    del cluster.events[:-KEPT]
    if cluster.broker is broker and broker.faults.find(fault.name) is fault:
        broker.faults.release(fault)


async def _rebalance(cluster: ClusterServer, met: Met) -> None:
    await group_verbs.rebalance(cluster, Call({"group": _group(met)}, {}, {}))


async def _expel_member(cluster: ClusterServer, met: Met) -> None:
    member = member_of(met.request)
    if not member:
        raise NoEventError("the request is of no member")
    await group_verbs.expel_member(cluster, Call({"group": _group(met)}, {}, {"member": member}))


async def _expire_offsets(cluster: ClusterServer, met: Met) -> None:
    group = _group(met)
    committed = await ask(cluster, groups.committed(group))
    if not committed:
        raise NoEventError(f"group {group:.100} has committed nothing")
    places = {str(topic.name): [each.partition_index for each in topic.partitions] for topic in committed}
    answer = await ask(cluster, groups.delete_offsets(group, places))
    codes = [answer.error_code, *(each.error_code for topic in answer.topics for each in topic.partitions)]
    for code in filter(None, codes):
        raise NoEventError(f"offsets of group {group:.100} do not expire now: {ErrorCode(code).name}")


async def _move_coordinator(cluster: ClusterServer, met: Met) -> None:
    topics = cluster.broker.metadata.topics
    places = [
        (topic, shard_index(name, len(topics[topic].partitions)))
        for topic, names in ((OFFSETS_TOPIC, met.named.groups), (TRANSACTIONS_TOPIC, met.named.transactional_ids))
        for name in names
        if topic in topics
    ]
    await _move(cluster, places, "the request names no group or transactional id that has a coordinator")


async def _move_leader(cluster: ClusterServer, met: Met) -> None:
    topics = cluster.broker.metadata.topics
    places = {(topic, index) for topic, index in met.named.partitions if topic in topics}
    if not places:  # as Metadata: topics alone
        places = {
            (topic, index)
            for topic in met.named.topics
            if topic in topics
            for index in range(len(topics[topic].partitions))
        }
    await _move(cluster, places, "the request names no partition")


async def _move(cluster: ClusterServer, places: Iterable[PartitionKey], none: str) -> None:
    """Let another broker lead each: the next that runs, if need be in the place of the one that led.

    Errors: NoEventError. `none`: the sentence where there are no places.
    """
    metadata, up = cluster.broker.metadata, [node.node_id for node in cluster.broker.nodes.up]
    by_topic: dict[str, dict[int, list[int]]] = {}
    for topic, index in sorted(places):
        partition = metadata.topics[topic].partitions[index]
        others = [node for node in up if node != partition.leader]
        if not others:
            raise NoEventError("one broker runs: nothing else can lead")
        heirs = [node for node in partition.replicas if node in others] or others
        heir = min(heirs, key=lambda node: (node <= partition.leader, node))
        kept = [node for node in partition.replicas if node not in (heir, partition.leader)]
        back = [partition.leader] if heir in partition.replicas else []
        by_topic.setdefault(topic, {})[index] = [heir, *kept, *back]
    if not by_topic:
        raise NoEventError(none)
    client = LocalClient(cluster.broker, cluster.config)
    try:
        moved = AlterPartitionReassignmentsRequest(
            timeout_ms=TIMEOUT_MS,
            topics=[
                ReassignableTopic(
                    name=topic,
                    partitions=[ReassignablePartition(partition_index=index, replicas=to) for index, to in of.items()],
                )
                for topic, of in by_topic.items()
            ],
        )
        answer = await client.call(moved, 0)
        codes = [answer.error_code, *(each.error_code for row in answer.responses for each in row.partitions)]
        for code in filter(None, codes):
            raise NoEventError(f"no other broker can lead: {ErrorCode(code).name}")
        elected = ElectLeadersRequest(
            election_type=PREFERRED,
            topic_partitions=[
                ElectLeadersRequestTopicPartitions(topic=topic, partitions=list(of)) for topic, of in by_topic.items()
            ],
            timeout_ms=TIMEOUT_MS,
        )
        await client.call(elected, 2)
    finally:
        client.close()


async def _restart(cluster: ClusterServer, met: Met) -> None:
    name = (await cluster.take_snapshot(None))["name"]
    try:
        await cluster.restore(name, keeps_devices=True)
    finally:
        await cluster.remove_snapshot(name)


async def _abort_transaction(cluster: ClusterServer, met: Met) -> None:
    broker, name = cluster.broker, _transactional_id(met)
    shard = broker.transactions.shard(name)
    found = shard.machine.transactions.get(name)
    if found is None or found.state is not ONGOING:
        raise NoEventError(f"transactional id {name:.100} has no open transaction")
    shard.apply(shard.machine.on_timer(name, Context(broker.turn.now_ms, broker.turn.env.rng)))


async def _fence_producer(cluster: ClusterServer, met: Met) -> None:
    name = _transactional_id(met)
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)
    client = LocalClient(cluster.broker, cluster.config)
    try:
        for _ in range(INIT_TRIES):
            topics = cluster.broker.metadata.topics
            if TRANSACTIONS_TOPIC not in topics:
                raise NoEventError("there are no transactions yet")
            index = shard_index(name, len(topics[TRANSACTIONS_TOPIC].partitions))
            code = (
                await client.call(request, INIT_VERSION, topics[TRANSACTIONS_TOPIC].partitions[index].leader)
            ).error_code
            if code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
            await asyncio.sleep(AGAIN_S)
    finally:
        client.close()
    if code:
        raise NoEventError(f"no second producer gets the id {name:.100}: {ErrorCode(code).name}")


def _group(met: Met) -> str:
    for group in sorted(met.named.groups):
        return group
    raise NoEventError("the request names no group")


def _transactional_id(met: Met) -> str:
    for name in sorted(met.named.transactional_ids):
        return name
    raise NoEventError("the request names no transactional id")


EVENTS: Final[dict[str, Callable[[ClusterServer, Met], Awaitable[None]]]] = {
    "rebalance": _rebalance,
    "expel_member": _expel_member,
    "expire_offsets": _expire_offsets,
    "move_coordinator": _move_coordinator,
    "move_leader": _move_leader,
    "restart": _restart,
    "abort_transaction": _abort_transaction,
    "fence_producer": _fence_producer,
}
