"""Reads for one Fetch: the batches of each partition within its limits, or the partition's error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.errors import ErrorCode, KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.cluster.metadata import Topic
    from broker.partitions.fetch_session import Wanted
    from broker.partitions.partition import Partition
    from broker.partitions.table import Partitions
    from storage.log.log import FileSlice

STORAGE_ERROR_SINCE: Final = 6
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


class Found:
    """The result of reading one partition. `is_cut`: the next batch is larger than the client allows."""

    __slots__ = ("diverging", "error_code", "is_cut", "partition", "records", "wanted")

    def __init__(
        self,
        wanted: Wanted,
        error_code: int,
        partition: Partition | None = None,
        records: FileSlice | None = None,
        diverging: tuple[int, int] | None = None,
    ) -> None:
        self.wanted = wanted
        self.error_code = error_code
        self.partition = partition
        self.records = records
        self.diverging = diverging
        self.is_cut = False


class FetchReader:
    """Reads partitions for one client: with its node, isolation level and size limits."""

    __slots__ = ("_api_version", "_by_id", "_max_bytes", "_node_id", "_partitions", "_read_committed", "_replica_id")

    def __init__(
        self,
        partitions: Partitions,
        node_id: int,
        api_version: int,
        *,
        by_id: bool,
        read_committed: bool,
        max_bytes: int,
        replica_id: int,
    ) -> None:
        self._partitions = partitions
        self._node_id = node_id
        self._api_version = api_version
        self._by_id = by_id
        self._read_committed = read_committed
        self._max_bytes = max_bytes
        self._replica_id = replica_id

    def read(self, wants: Iterable[Wanted]) -> tuple[list[Found], int, bool]:
        """The result of each partition, the bytes of all, and whether an error or divergence must be answered at once.

        Unknown partitions come last, as in Kafka's responses.
        """
        found: list[Found] = []
        unknown: list[Found] = []
        left = self._max_bytes
        size = 0
        failed = False
        min_one = True  # the first batch is read whole, even beyond the limits
        for wanted in wants:
            part = self._look(wanted, left, min_one)
            if part.error_code in UNKNOWN:
                unknown.append(part)
                continue
            found.append(part)
            if part.records is not None:
                got = part.records.asked
                size += got
                left = max(0, left - got)
                min_one = False
            elif part.error_code or part.diverging is not None:
                failed = True
        return found + unknown if unknown else found, size, failed

    def _look(self, wanted: Wanted, left: int, min_one: bool) -> Found:
        topic = self.topic(wanted)
        if isinstance(topic, int):
            return Found(wanted, topic)
        error_code = self._leader_error(topic, wanted)
        if error_code:
            return Found(wanted, error_code)
        offset = wanted.fetch_offset
        try:
            partition = self._partitions.get(topic, wanted.partition)
            if partition.info is not topic.partitions[wanted.partition]:
                partition.configure(topic, self._partitions.metadata)
            limit = partition.last_stable_offset if self._read_committed else partition.high_watermark
            log = partition.log
            if wanted.last_fetched_epoch >= 0:
                diverging = _diverging(partition, wanted)
                if diverging is not None:
                    return Found(wanted, 0, partition, None, diverging)
            if offset < limit and offset >= log.log_start_offset:
                if left <= 0 and not min_one:
                    return Found(wanted, 0, partition)
                most = min(wanted.partition_max_bytes, left)
                found = Found(wanted, 0, partition, log.read(offset, most, limit_offset=limit, min_one=min_one))
                found.is_cut = found.records is None and most > 0
                return found
            if log.log_start_offset <= offset <= log.end_offset:
                return Found(wanted, 0, partition)
            return Found(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        except KafkaError as error:
            error_code = error.code
        except (StorageError, OSError):
            error_code = ErrorCode.KAFKA_STORAGE_ERROR
        if error_code == ErrorCode.KAFKA_STORAGE_ERROR and self._api_version < STORAGE_ERROR_SINCE:
            error_code = NOT_LEADER
        return Found(wanted, error_code)

    def topic(self, wanted: Wanted) -> Topic | int:
        """The topic, or an error code."""
        metadata = self._partitions.metadata
        if not self._by_id:
            return metadata.topics.get(wanted.topic) or int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topic = metadata.topics_by_id.get(wanted.topic_id)
        if topic is not None:
            wanted.topic = topic.name
            return topic
        if not wanted.topic:
            return int(ErrorCode.UNKNOWN_TOPIC_ID)
        # the session began with a topic of this name that has been deleted since
        if wanted.topic in metadata.topics:
            return int(ErrorCode.INCONSISTENT_TOPIC_ID)
        return int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _leader_error(self, topic: Topic, wanted: Wanted) -> int:
        if not 0 <= wanted.partition < len(topic.partitions):
            return int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        info = topic.partitions[wanted.partition]
        if info.leader != self._node_id:
            return NOT_LEADER
        epoch = wanted.current_leader_epoch
        if epoch != NO_EPOCH and epoch != info.leader_epoch:
            return FENCED if epoch < info.leader_epoch else int(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if self._replica_id >= 0:  # a follower: no partition has one
            return NOT_LEADER if epoch == NO_EPOCH else int(ErrorCode.UNKNOWN_LEADER_EPOCH)
        return 0


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
