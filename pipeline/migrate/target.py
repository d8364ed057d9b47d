"""The cluster that is migrated to: its topics, made, and held open while records arrive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # it re-exports without saying so
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from pipeline.errors import PipelineError
from pipeline.migrate.plan import Topic

WAIT_S: Final = 60.0
# While records arrive nothing may be removed for its age, merged, stamped anew or refused for its time.
OPEN: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}


class Target:
    """The admin's side of it. Errors: PipelineError."""

    def __init__(self, client: Mapping[str, Any]) -> None:
        self.admin = AdminClient(dict(client))
        try:
            self._known = self.admin.list_topics(timeout=WAIT_S).topics
        except KafkaException as error:
            raise PipelineError(f"the target at {client['bootstrap.servers']} does not answer: {error}") from error

    def open_topics(self, topics: Iterable[Topic], replication_factor: int) -> None:
        """Make the topics that are not there, with as many partitions, open for records of any age."""
        absent: list[NewTopic] = []
        for topic in topics:
            known = self._known.get(topic.name)
            if known is None:
                configs = {**topic.configs, **OPEN}
                absent.append(NewTopic(topic.name, topic.partitions, replication_factor, config=configs))
            elif len(known.partitions) != topic.partitions:
                raise PipelineError(
                    f"topic {topic.name} has {topic.partitions} partitions, and {len(known.partitions)} in the target: "
                    "delete it there, or migrate to another cluster"
                )
            else:
                self._set(topic.name, OPEN)
        if absent:
            for name, made in self.admin.create_topics(absent, request_timeout=WAIT_S).items():
                _done(made, f"topic {name} cannot be made")

    def close_topic(self, topic: Topic) -> None:
        """Give a topic the settings it has in the source."""
        self._set(topic.name, {**dict.fromkeys(OPEN), **topic.configs})

    def ends(self, topics: Iterable[Topic]) -> dict[str, int]:
        """Where every partition ends, by log."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call] # of an untyped client
        places = {TopicPartition(t.name, p): latest for t in topics for p in range(t.partitions)}
        if not places:
            return {}
        found = self.admin.list_offsets(places, request_timeout=WAIT_S)
        return {
            f"{place.topic}-{place.partition}": _done(end, f"{place.topic} has no end").offset
            for place, end in found.items()
        }

    def _set(self, topic: str, configs: Mapping[str, str | None]) -> None:
        entries = [
            ConfigEntry(
                name,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for name, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for made in self.admin.incremental_alter_configs([resource], request_timeout=WAIT_S).values():
            _done(made, f"topic {topic} cannot be configured")


def _done(future: Any, what: str) -> Any:
    try:
        return future.result(WAIT_S)
    except KafkaException as error:
        raise PipelineError(f"{what}: {error}") from error
