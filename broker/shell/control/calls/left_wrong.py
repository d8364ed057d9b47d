"""What clients have left wrong: open transactions, commits beyond a partition's end, or beyond what they were sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker.cluster.topic_names import TRANSACTIONS_TOPIC
from broker.coordinator.transactions.transaction import ONGOING, STATE_NAMES

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.control.routes import Call


async def left_wrong(cluster: ClusterServer, call: Call) -> list[str]:
    """A sentence for each, in the order of their names."""
    broker = cluster.broker
    return sorted(
        [*_open_transactions(broker), *_commits_beyond_the_end(broker), *_commits_above_what_was_sent(broker)]
    )


def _open_transactions(broker: Broker) -> Iterator[str]:
    if TRANSACTIONS_TOPIC not in broker.metadata.topics:
        return
    for shard in broker.transactions.shards:
        for each in list(shard.machine) if shard.machine is not None else ():
            if each.state is ONGOING:
                places = [f"{topic}-{index}" for topic, indexes in each.partitions.items() for index in sorted(indexes)]
                state, of = STATE_NAMES[each.state], ", ".join(places)
                yield f"transaction {each.transactional_id} was left {state}, with {of}"


def _commits_beyond_the_end(broker: Broker) -> Iterator[str]:
    topics = broker.metadata.topics
    for shard in broker.groups.shards.made:
        if shard is None or shard.machine is None:
            continue
        offsets = shard.machine.offsets
        for group in list(offsets.group_ids()):
            for name, indexes in offsets.all_partitions(group).items():
                topic = topics.get(name)
                if topic is None:
                    continue
                for index in indexes:
                    committed, end = offsets.get(group, name, index), 0
                    if index < len(topic.partitions):
                        end = broker.partitions.end_of(topic, index)
                    if committed is not None and committed.offset > end:
                        yield f"group {group} has committed {committed.offset} of {name}-{index}, which ends at {end}"


def _commits_above_what_was_sent(broker: Broker) -> Iterator[str]:
    ring = broker.clients.journal
    if ring is None or ring.dropped:
        return  # it cannot be known
    from broker.journal.reading import entries, topic_names  # 5 ms: most brokers keep no journal
    from broker.journal.sent import above_what_was_sent  # 1 ms: as above

    for each in above_what_was_sent(entries(ring), topic_names(ring, broker.topics_by_id)):
        yield (
            f"group {each.group} has committed {each.offset} of {each.topic}-{each.partition}, and its members were"
            f" sent the records below {each.sent}"
        )
