"""Reads the logs of a running broker: which there are, where they begin and end, and their batches as stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from broker.asks.records import fetch
from broker.asks.topics import offsets_of
from momus.client.kafka_client import EARLIEST, LATEST, Client, RequestFailedError
from protocol.errors import ErrorCode

NO_ID: Final = bytes(16)
FETCH_BYTES: Final = 8 << 20  # of one answer; a larger batch comes whole
_PAUSE_S: Final = 0.1
# Another broker leads the partition by now, or it has just been made and not every broker knows it.
_PASSING: Final = frozenset({
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
})  # fmt: skip  # one argument, no indent of its own
_Answer = TypeVar("_Answer")


class LogPlace(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int
    topic_id: bytes = NO_ID  # of brokers before Kafka 2.8


class Fetched(NamedTuple):
    """One answer to a Fetch."""

    records: bytes  # batches as stored; the last one may be cut off
    high_watermark: int


class LogClient(Client):
    """A client that reads whole logs, whatever consumers may see of them."""

    def __init__(self, bootstrap: str, *, timeout_s: float = 10.0) -> None:
        super().__init__(bootstrap, timeout_s=timeout_s)
        self._leaders: dict[tuple[str, int], int] = {}

    def places(self) -> list[LogPlace]:
        """Every partition of every topic that the broker shows to this user, internal topics included.

        Errors:  RequestFailedError: a topic cannot be described; OSError: no connection.
        """
        return self._patiently(self._places)

    def first_offsets(self, places: Iterable[LogPlace]) -> dict[LogPlace, int]:
        """The first offset of each that a consumer can read. Errors: RequestFailedError, OSError."""
        return self._listed(places, EARLIEST)

    def ends(self, places: Iterable[LogPlace]) -> dict[LogPlace, int]:
        """The high watermark of each: consumers that read uncommitted records see them up to there.

        Errors:  RequestFailedError, OSError.
        """
        return self._listed(places, LATEST)

    def fetch(self, place: LogPlace, offset: int) -> Fetched:
        """The batches from that which holds an offset, or follows it, on. Both are empty at the end of the log.

        Errors:  RequestFailedError: OFFSET_OUT_OF_RANGE, or the topic is gone; OSError: no connection.
        """
        return self._patiently(lambda: self._fetched(place, offset))

    # ---- inside ----

    def _places(self) -> list[LogPlace]:
        found = []
        for topic in sorted(self.cluster(None).topics, key=lambda each: str(each.name)):
            if topic.error_code:
                raise RequestFailedError(f"topic {topic.name}", topic.error_code)
            for each in sorted(topic.partitions, key=lambda each: int(each.partition_index)):
                self._leaders[topic.name, each.partition_index] = each.leader_id
                found.append(LogPlace(topic.name, each.partition_index, bytes(topic.topic_id)))
        return found

    def _fetched(self, place: LogPlace, offset: int) -> Fetched:
        self._leader(place)
        found = self.ask(fetch(place.topic, place.partition, offset, most_bytes=FETCH_BYTES, topic_id=place.topic_id))
        if found.error_code:
            raise RequestFailedError(f"{place.topic}-{place.partition}", found.error_code)
        return Fetched(bytes(found.records or b""), int(found.high_watermark))

    def _listed(self, places: Iterable[LogPlace], timestamp: int) -> dict[LogPlace, int]:
        wanted = {(each.topic, each.partition): each for each in places}
        return self._patiently(lambda: self._listed_once(wanted, timestamp)) if wanted else {}

    def _listed_once(self, wanted: dict[tuple[str, int], LogPlace], timestamp: int) -> dict[LogPlace, int]:
        leaders = {key: self._leader(place) for key, place in wanted.items()}
        found = {}
        for (topic, index), row in self.ask(offsets_of(leaders, timestamp)).items():
            if row.error_code:
                raise RequestFailedError(f"{topic}-{index}", row.error_code)
            found[wanted[topic, index]] = row.offset
        return found

    def _leader(self, place: LogPlace) -> int:
        leader = self._leaders.get((place.topic, place.partition), -1)
        if leader not in self._nodes:
            raise RequestFailedError(f"{place.topic}-{place.partition}", ErrorCode.LEADER_NOT_AVAILABLE)
        return leader

    def _patiently(self, ask: Callable[[], _Answer]) -> _Answer:
        """The answer to a question that is asked again, of those who lead by then, while what it meets may pass."""
        give_up = time.monotonic() + self._timeout_s
        while True:
            try:
                return ask()
            except RequestFailedError as error:
                if error.code not in _PASSING or time.monotonic() > give_up:
                    raise
            except OSError:
                if time.monotonic() > give_up:
                    raise
                self._forget_leaders()
            time.sleep(_PAUSE_S)
            self._look_again(give_up)

    def _look_again(self, give_up: float) -> None:
        """Learn who leads; a broker that starts again takes a moment. Errors: OSError: none answers until then."""
        while True:
            try:
                self._places()
                return
            except OSError:
                if time.monotonic() > give_up:
                    raise
                self._forget_leaders()
            time.sleep(_PAUSE_S)

    def _forget_leaders(self) -> None:
        """Close every connection, so that the next request makes its own."""
        for connection in self._connections.values():
            connection.close()
        self._connections = {}
        self._known.clear()
