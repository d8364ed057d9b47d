"""The topics of the target cluster: created, and configured so that records of any age can be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its __init__ re-exports names without __all__
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
# During the copy, no record may be removed, compacted, given another timestamp or refused for its timestamp.
OPEN: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}


class Target:
    """The admin client of the target. Errors, of every method: PipelineError: the target refuses or does not answer."""

    def __init__(self, client: Mapping[str, Any]) -> None:
        self.admin = AdminClient(dict(client))
        try:
            self._known = self.admin.list_topics(timeout=WAIT_S).topics
        except KafkaException as error:
            raise PipelineError(f"the target at {client['bootstrap.servers']} does not answer: {error}") from error

    def refusals(self, topics: Iterable[Topic], replication_factor: int) -> list[str]:
        """Why it would refuse these topics; nothing is made."""
        found: list[str] = []
        absent: list[NewTopic] = []
        for topic in topics:
            known = self._known.get(topic.name)
            if known is None:
                absent.append(NewTopic(topic.name, topic.partitions, replication_factor, config={**topic.configs}))
            elif len(known.partitions) != topic.partitions:
                found.append(
                    f"topic {topic.name} has {topic.partitions} partitions, but {len(known.partitions)} in the target: "
                    "delete it there, or migrate to another cluster"
                )
            else:
                found += _said(partial(self._set, topic.name, topic.configs, only_check=True))
        if absent:
            made = self.admin.create_topics(absent, request_timeout=WAIT_S, validate_only=True)
            for name, future in made.items():
                found += _said(
                    partial(_done, future, f"topic {name} cannot be made (--exclude-config leaves a setting out)")
                )
        return found

    def open_topics(self, topics: Iterable[Topic], replication_factor: int) -> None:
        """Create the absent topics with as many partitions, and open all for records of any age."""
        absent: list[NewTopic] = []
        for topic in topics:
            if topic.name in self._known:
                self._set(topic.name, OPEN)
            else:
                configs = {**topic.configs, **OPEN}
                absent.append(NewTopic(topic.name, topic.partitions, replication_factor, config=configs))
        if absent:
            for name, made in self.admin.create_topics(absent, request_timeout=WAIT_S).items():
                _done(made, f"topic {name} cannot be made")

    def known(self, topics: Iterable[Topic]) -> list[Topic]:
        """Those of the topics that it has."""
        return [each for each in topics if each.name in self._known]

    def close_topic(self, topic: Topic) -> None:
        """Set a topic's configuration to that in the source."""
        self._set(topic.name, {**dict.fromkeys(OPEN), **topic.configs})

    def starts(self, topics: Iterable[Topic]) -> dict[str, int]:
        """Log -> log start offset."""
        return self._offsets(topics, OffsetSpec.earliest())  # type: ignore[no-untyped-call]  # the client has no types

    def ends(self, topics: Iterable[Topic]) -> dict[str, int]:
        """Log -> log end offset."""
        return self._offsets(topics, OffsetSpec.latest())  # type: ignore[no-untyped-call]  # the client has no types

    def _offsets(self, topics: Iterable[Topic], spec: OffsetSpec) -> dict[str, int]:
        wanted = {TopicPartition(t.name, p): spec for t in topics for p in range(t.partitions)}
        if not wanted:
            return {}
        found = self.admin.list_offsets(wanted, request_timeout=WAIT_S)
        return {
            f"{key.topic}-{key.partition}": _done(end, f"{key.topic}-{key.partition} has no offsets").offset
            for key, end in found.items()
        }

    def _set(self, topic: str, configs: Mapping[str, str | None], *, only_check: bool = False) -> None:
        if not configs:
            return
        entries = [
            ConfigEntry(
                name,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for name, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for made in self.admin.incremental_alter_configs(
            [resource], request_timeout=WAIT_S, validate_only=only_check
        ).values():
            _done(made, f"topic {topic} cannot be configured")


def _done(future: Any, what: str) -> Any:
    try:
        return future.result(WAIT_S)
    except KafkaException as error:
        raise PipelineError(f"{what}: {error}") from error


def _said(tried: Callable[[], object]) -> list[str]:
    """Why it is refused, in a list; an empty one: it is not."""
    try:
        tried()
    except PipelineError as error:
        return [str(error)]
    return []
