"""A share group with a dead-letter queue: what is in the queue, and what the log says of the records given up."""

from __future__ import annotations

from typing import Any, NamedTuple

from core_requests import alter_request
from unit.coordinator.share.kit import GROUP, ShareWorld

from broker.coordinator.share.state import UPDATE, decode_key, decode_snapshot, decode_update
from protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.record_batch import iter_batches, iter_records

QUEUE = "dlq.q"
TOPIC_NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
ENABLE = "errors.deadletterqueue.group.enable"
AUTO_CREATE = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX = "errors.deadletterqueue.topic.name.prefix"
REJECTED = b"Offset rejected by client."
TOO_OFTEN = b"Offset delivery count exceeded the threshold."
BROKER = 4  # the resource type
ACCEPT, RELEASE, REJECT = 1, 2, 3


class Said(NamedTuple):
    """A state that the log has said of records."""

    first: int
    last: int
    state: int
    count: int


class LettersWorld(ShareWorld):
    """The same with a queue of one partition, unless `queue` is another number of them; 0: there is none."""

    def __init__(
        self,
        topics: dict[str, int] | None = None,
        *,
        queue: int = 1,
        name: str = QUEUE,
        copy: bool = False,
        enabled: bool = True,
        configs: dict[str, str] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(topics, **settings)
        if queue:
            self.make_queue(queue, name, {**({ENABLE: "true"} if enabled else {}), **(configs or {})})
        assert self.set(**{TOPIC_NAME: name, COPY: str(copy).lower()}) == 0

    def make_queue(self, partitions: int, name: str = QUEUE, configs: dict[str, str] | None = None) -> None:
        rows = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
        wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, configs=rows)
        answer = self.client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7).topics[0]
        assert answer.error_code == 0, answer.error_message

    def set_broker(self, **configs: str) -> None:
        """Settings of all brokers."""
        assert self.client.call(alter_request(BROKER, "", configs), 1).responses[0].error_code == 0

    def letters(self, partition: int = 0, name: str = QUEUE) -> list[Any]:
        """The records in the queue; none where it does not exist."""
        topic = self.world.broker.metadata.topics.get(name)
        if topic is None:
            return []
        found = self.world.broker.partitions.get(topic, partition)
        return [record for batch in self.batches(partition, name) for record in iter_records(batch)][
            : found.high_watermark
        ]

    def batches(self, partition: int = 0, name: str = QUEUE) -> list[bytes]:
        """The batches in the queue, as they are stored."""
        topic = self.world.broker.metadata.topics[name]
        log = self.world.broker.partitions.get(topic, partition).log
        found = [] if not log.end_offset else log.read(0, 1 << 30, limit_offset=log.end_offset).read()
        return [found[at : at + header.size] for at, header in iter_batches(found)]

    def offsets(self, partition: int = 0, name: str = QUEUE) -> list[tuple[int, bytes]]:
        """(offset, cause) of each letter."""
        return [
            (int(dict(record.headers)["__dlq.errors.offset"]), dict(record.headers)["__dlq.errors.message"])
            for record in self.letters(partition, name)
        ]

    def said(self, partition: int = 0) -> list[list[Said]]:
        """What each record of the log has said of the share partition, but for what says nothing."""
        log, key, found = self.log(), self.key(partition), []
        data = log.read(log.log_start_offset, 1 << 30, limit_offset=log.end_offset).read()
        for at, header in iter_batches(data):
            for record in iter_records(data[at : at + header.size]):
                if decode_key(record.key) != key or record.value is None:
                    continue
                is_update = record.key[1] == UPDATE
                batches = decode_update(record.value)[3] if is_update else decode_snapshot(record.value).batches
                found.append([Said(*batch) for batch in batches])
        return [each for each in found if each]

    @property
    def under_way(self) -> Any:
        """What is on its way."""
        return self.world.broker.share.post.under_way


__all__ = ["ACCEPT", "AUTO_CREATE", "COPY", "ENABLE", "GROUP", "PREFIX", "QUEUE", "REJECT", "REJECTED", "RELEASE"]
__all__ += ["TOO_OFTEN", "TOPIC_NAME", "LettersWorld", "Said"]
