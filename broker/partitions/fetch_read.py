"""Reads for one Fetch: the batches of each partition within its limits, or the partition's error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from protocol.errors import ErrorCode, KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker.cluster.topics import Topic
    from broker.partitions.fetch_session import Wanted
    from broker.partitions.partition import Partition
    from broker.partitions.table import Partitions
    from storage.log.log import FileSlice

NO_EPOCH: Final = -1
READ_COMMITTED: Final = 1
ISOLATION_LEVELS: Final = (0, READ_COMMITTED)
NOT_LEADER: Final = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
FENCED: Final = int(ErrorCode.FENCED_LEADER_EPOCH)
# unlike other errors, these do not end the wait of a Fetch, as in Kafka
UNKNOWN: Final = frozenset({int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), int(ErrorCode.UNKNOWN_TOPIC_ID)})


def check_isolation_level(level: int) -> None:
    """Refuse a level that is neither read_uncommitted (0) nor read_committed (1). Errors: INVALID_REQUEST."""
    if level not in ISOLATION_LEVELS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown isolation level {level}")


class Unusual:
    """What a partition answers beside its records, or in their place.

    error_code  0: none.
    diverging   (epoch, end offset) at which the client's log diverges from this one (KIP-595).
    is_cut      the next batch is larger than the client allows.
    """

    __slots__ = ("diverging", "error_code", "is_cut")

    def __init__(self, error_code: int = 0, *, diverging: tuple[int, int] | None = None, is_cut: bool = False) -> None:
        self.error_code = error_code
        self.diverging = diverging
        self.is_cut = is_cut


# the result of reading one partition; the partition is None where there is an error
# (records are bytes where they were converted: requests/message_sets.py)
Found: TypeAlias = "tuple[Wanted, Partition | None, FileSlice | bytes | None, Unusual | None]"
_CUT: Final = Unusual(is_cut=True)


class FetchReader:
    """Reads partitions for one client: with its node, isolation level and size limits.

    It finds a partition, its leader and epochs once, and again only when the metadata has changed.
    """

    __slots__ = (
        "_version",
        "by_id",
        "committed",
        "max_bytes",
        "node_id",
        "partitions",
        "replica_id",
    )

    def __init__(
        self,
        partitions: Partitions,
        node_id: int,
        *,
        by_id: bool,
        committed: bool,
        max_bytes: int,
        replica_id: int,
    ) -> None:
        self.partitions = partitions
        self._version = -1  # of the metadata at the last read. None comes twice: see Broker._new_metadata
        self.node_id = node_id
        self.by_id = by_id
        self.committed = committed
        self.max_bytes = max_bytes
        self.replica_id = replica_id

    def again(self) -> FetchReader:
        """Another one for the same client and limits."""
        return FetchReader(
            self.partitions,
            self.node_id,
            by_id=self.by_id,
            committed=self.committed,
            max_bytes=self.max_bytes,
            replica_id=self.replica_id,
        )

    def read(self, wants: Collection[Wanted]) -> tuple[list[Found], list[Found], int, bool]:
        """The result of each partition, those of unknown ones apart, the bytes of all records, and whether there is an
        error or a divergence, which is answered at once."""
        version = self.partitions.metadata.version
        if self._version != version:
            self._version = version
            for wanted in wants:
                wanted.source = None
        found: list[Found] = []
        unknown: list[Found] = []
        committed, left = self.committed, self.max_bytes
        size, failed = 0, False
        min_one = True  # the first batch is read whole, even beyond the limits
        for wanted in wants:
            source = partition = wanted.source
            records = unusual = None
            try:
                if partition is None:
                    partition = self._find(wanted)
                log, offset = partition.log, wanted.fetch_offset
                limit = partition.last_stable_offset if committed else partition.high_watermark
                if wanted.last_fetched_epoch >= 0 and (diverging := _diverging(partition, wanted)) is not None:
                    unusual, failed = Unusual(diverging=diverging), True
                elif offset < log.log_start_offset or offset > log.end_offset:
                    raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
                elif offset < limit and (left > 0 or min_one):
                    most = min(wanted.partition_max_bytes, left)
                    records = log.read(offset, most, limit_offset=limit, min_one=min_one)
                    if records is not None:
                        asked = records.asked
                        size += asked
                        left = max(0, left - asked)
                        min_one = False
                    elif committed and most > 0:
                        unusual = _CUT
            except (KafkaError, StorageError, OSError) as error:
                wanted.source = partition = None
                if source is not None and not isinstance(error, KafkaError):
                    return self.read(wants)  # its log may be open again in the partition that is found now
                unusual = Unusual(error.code if isinstance(error, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR)
                if unusual.error_code in UNKNOWN:
                    unknown.append((wanted, None, None, unusual))
                    continue
                failed = True
            found.append((wanted, partition, records, unusual))
        return found, unknown, size, failed

    def _find(self, wanted: Wanted) -> Partition:
        """The partition, if this node leads it in the epoch that the client gives. Errors: KafkaError."""
        partitions = self.partitions
        metadata = partitions.metadata
        topic = self.topic(wanted)
        if not 0 <= wanted.partition < len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        info, epoch = topic.partitions[wanted.partition], wanted.current_leader_epoch
        if info.leader != self.node_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if epoch not in (NO_EPOCH, info.leader_epoch):
            is_old = epoch < info.leader_epoch
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH)
        if self.replica_id >= 0:  # a follower: no partition has one
            is_unknown = epoch != NO_EPOCH
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH if is_unknown else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        partition = partitions.get(topic, wanted.partition)
        if partition.metadata_version != metadata.version:
            partition.configure(topic, metadata)
        wanted.source = partition
        return partition

    def topic(self, wanted: Wanted) -> Topic:
        """The topic. Errors: KafkaError."""
        metadata = self.partitions.metadata
        topic = metadata.topics_by_id.get(wanted.topic_id) if self.by_id else metadata.topics.get(wanted.topic)
        if topic is not None:
            wanted.topic = topic.name
            return topic
        if self.by_id and not wanted.topic:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if self.by_id and wanted.topic in metadata.topics:
            # the session began with a topic of this name that has been deleted since
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _diverging(partition: Partition, wanted: Wanted) -> tuple[int, int] | None:
    """(epoch, end offset) at which the client's log diverges from this one, if it does (KIP-595).

    Errors:  OFFSET_OUT_OF_RANGE: the epoch is unknown, or the offset is below the log's start.
    """
    epoch, end_offset = partition.log.epoch_end_offset(wanted.last_fetched_epoch)
    if end_offset < 0 or epoch < 0 or wanted.fetch_offset < partition.log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return epoch, end_offset
    return None
