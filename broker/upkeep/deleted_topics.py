"""Removes what is left of deleted topics: committed offsets, places in share groups' lists, and references."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.groups.kinds import SHARE
from broker.coordinator.loading import on_disk
from broker.coordinator.offsets.table import ZERO_ID
from broker.coordinator.offsets.topic_ids import IsGone, tombstones_of_gone_topics
from broker.coordinator.runtime import READY
from broker.turn.decision import Decision, Record
from protocol.errors import KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.data.directory import DataDirectory
    from broker.cluster.topics import Topic
    from broker.coordinator.group_shards import GroupShards
    from broker.partitions.fetch_session import FetchSessions
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn

logger = logging.getLogger("momus.maintenance")


class DeletedTopics:
    """Follows deletions, and makes up at a start for those that a crash has cut short."""

    def __init__(
        self,
        turn: Turn,
        directory: DataDirectory,
        groups: GroupShards,
        partitions: Partitions,
        fetch_sessions: FetchSessions,
    ) -> None:
        self._turn = turn
        self._directory = directory
        self._groups = groups
        self._partitions = partitions
        self._fetch_sessions = fetch_sessions
        self._gone: dict[str, set[bytes]] = {}  # by name and ids

    def topic_gone(self, topic: Topic) -> None:
        """A topic was deleted, and that is durable. Many topics are handled together."""
        if not self._gone:
            self._turn.jobs.add(self._follow())
        self._gone.setdefault(topic.name, set()).add(topic.topic_id)

    def _follow(self) -> Iterator[None]:
        gone, self._gone = self._gone, {}
        yield from self._remove(lambda name, topic_id: name in gone and topic_id in (ZERO_ID, *gone[name]))
        for _, shard in self._groups.shards.existing():
            if shard.state is READY:
                shard.machine.offsets.forget_labels(gone)
        yield from self._fetch_sessions.forget_deleted()

    def at_start(self) -> Iterator[None]:
        """Remove the offsets of topics that were deleted in an earlier process."""
        metadata = self._partitions.metadata
        names, ids = set(metadata.topics), set(metadata.topics_by_id)

        def is_gone(name: str, topic_id: bytes) -> bool:
            known = self._partitions.metadata  # it has the topics made since; `_follow` handles those deleted since
            if topic_id == ZERO_ID:
                return name not in names and name not in known.topics
            return topic_id not in ids and topic_id not in known.topics_by_id

        yield from self._remove(is_gone)

    def _remove(self, is_gone: IsGone) -> Iterator[None]:
        shards = self._groups.shards
        have_log = set(on_disk(self._directory, OFFSETS_TOPIC, len(shards)))
        for index in range(len(shards)):
            if shards.made[index] is None and index not in have_log:
                continue
            shard = shards[index]
            done = shard.state is not READY and not self._directory.exists(OFFSETS_TOPIC, index)
            while not done:
                try:
                    shard.require()
                except KafkaError:  # it loads in the background
                    yield
                    continue
                except (OSError, StorageError) as error:
                    logger.error("%s: cannot remove the offsets of deleted topics: %s", shard, error)
                    break
                machine = shard.machine
                forgetting = list(_without_gone(machine.groups.values(), is_gone))
                if forgetting:
                    shard.apply(Decision(records=forgetting))
                for records in tombstones_of_gone_topics(machine.offsets, is_gone):
                    shard.apply(Decision(records=records))
                    yield
                    if shard.machine is not machine or shard.state is not READY:
                        break  # it was reloaded: begin again
                else:
                    done = True


def _without_gone(groups: Iterable[Any], is_gone: IsGone) -> Iterator[Record]:
    """The records of share groups that list topics which are gone; for what they have read see share/coordinator.py."""
    for group in groups:
        if group.group_type == SHARE:
            after = group.state_partitions.without(is_gone)
            if after != group.state_partitions:
                from broker.coordinator.groups.share.records import state_partitions_record  # 5 ms: not in most starts

                yield state_partitions_record(group.group_id, after)
