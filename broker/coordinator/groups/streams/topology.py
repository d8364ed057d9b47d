"""From the topology of a streams application to its tasks: the topics it needs, and their partition counts.

    source topics       must exist, else the group waits (MISSING_SOURCE_TOPICS)
    repartition topics  as many partitions as the topology says; else as many as the largest source of the subtopology
                        that writes it, which may be a repartition topic itself; then equal within a copartition group
    changelog topics    as many as their subtopology has tasks
    tasks               as many as the largest source of the subtopology, repartition topics included

An existing topic keeps its partitions. `missing` are the topics the broker has to create. An internal topic with
another partition count than it needs is INCORRECTLY_PARTITIONED_TOPICS, as are copartitioned source topics that differ.
Everything here follows from the stored topology and the cluster's topics: it is computed again after a restart.
Source: KIP-1071; Kafka's InternalTopicManager, RepartitionTopics, CopartitionedTopicsEnforcer, ChangelogTopics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.coordinator.groups.streams.sticky_assignor import Subtopology
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from protocol.messages.streams_group_records import (
        StreamsGroupTopologyValue,
        StreamsGroupTopologyValueSubtopology,
        StreamsGroupTopologyValueTopicInfo,
    )

STALE_TOPOLOGY: Final = 0
MISSING_SOURCE_TOPICS: Final = 1
INCORRECTLY_PARTITIONED_TOPICS: Final = 2
MISSING_INTERNAL_TOPICS: Final = 3
SHUTDOWN_APPLICATION: Final = 4
ASSIGNMENT_DELAYED: Final = 5
MISSING_CLIENT_TAGS: Final = 6

NAMES_SHOWN: Final = 3

PartitionCount = Callable[[str], "int | None"]  # of an existing topic


class InternalTopic(NamedTuple):
    """A topic that the broker creates for the application."""

    name: str
    partitions: int
    replication_factor: int  # -1: the broker's default
    configs: Mapping[str, str]


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with all partition counts decided."""

    subtopology_id: str
    tasks: int
    source_topics: tuple[str, ...]  # repartition topics not included
    repartition_sinks: tuple[str, ...]
    repartition_sources: tuple[InternalTopic, ...]
    changelogs: tuple[InternalTopic, ...]

    def sources(self) -> Iterator[str]:
        """All topics that the subtopology reads."""
        yield from self.source_topics
        for topic in self.repartition_sources:
            yield topic.name

    def assignable(self) -> Subtopology:
        """The input of the assignor."""
        return Subtopology(self.subtopology_id, self.tasks, bool(self.changelogs))


class ConfiguredTopology(NamedTuple):
    """A topology as far as it can be decided, and the status that keeps it from running, if any."""

    subtopologies: Mapping[str, ConfiguredSubtopology] | None = None  # in the order of their ids
    missing: tuple[InternalTopic, ...] = ()  # to be created
    status: tuple[int, str] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether tasks can be assigned: no status says what is missing."""
        return self.status is None

    def assignable(self) -> list[Subtopology]:
        """The subtopologies of a topology that is ready."""
        assert self.is_ready
        return [s.assignable() for s in (self.subtopologies or {}).values()]


class NotReadyError(Exception):
    """The topics do not fit the topology."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def configured(topology: StreamsGroupTopologyValue, metadata: ClusterMetadata) -> ConfiguredTopology:
    """`configure` with the topics that exist now."""
    topics = metadata.topics

    def partition_count(name: str) -> int | None:
        topic = topics.get(name)
        return None if topic is None else len(topic.partitions)

    return configure(topology, partition_count)


def configure(topology: StreamsGroupTopologyValue, partition_count: PartitionCount) -> ConfiguredTopology:
    """Decide all that can be decided.

    Errors: STREAMS_INVALID_TOPOLOGY: no topics could make the topology run.
    """
    try:
        return _configure(topology, partition_count)
    except NotReadyError as error:
        return ConfiguredTopology(status=(error.status, error.detail))


def _configure(topology: StreamsGroupTopologyValue, partition_count: PartitionCount) -> ConfiguredTopology:
    subtopologies = topology.subtopologies
    missing = {t for s in subtopologies for t in s.source_topics if partition_count(t) is None}
    if missing:
        raise NotReadyError(MISSING_SOURCE_TOPICS, f"Source topics are missing: {summary(missing)}")
    decided = repartition_counts(subtopologies, partition_count)

    def count(name: str) -> int:
        known = partition_count(name)
        return decided[name] if known is None else known

    fixed = {t.name for s in subtopologies for t in s.repartition_source_topics if t.partitions}
    flexible = {t.name for s in subtopologies for t in s.repartition_source_topics if not t.partitions}
    for subtopology in subtopologies:
        for group in copartition_groups(subtopology):
            decided.update(copartitioned(group, fixed, flexible, count))
    made: dict[str, ConfiguredSubtopology] = {}
    for subtopology in sorted(subtopologies, key=lambda s: s.subtopology_id):
        sources = [*subtopology.source_topics, *(t.name for t in subtopology.repartition_source_topics)]
        if not sources:
            raise invalid(f"subtopology {subtopology.subtopology_id} reads nothing")
        tasks = max(count(name) for name in sources)
        for topic in subtopology.state_changelog_topics:
            decided[topic.name] = tasks
        made[subtopology.subtopology_id] = ConfiguredSubtopology(
            subtopology.subtopology_id,
            tasks,
            tuple(sorted(set(subtopology.source_topics))),
            tuple(sorted(set(subtopology.repartition_sink_topics))),
            _internal(subtopology.repartition_source_topics, decided),
            _internal(subtopology.state_changelog_topics, decided),
        )
    to_make = missing_topics(made.values(), partition_count)
    if not to_make:
        return ConfiguredTopology(made)
    names = summary(topic.name for topic in to_make)
    return ConfiguredTopology(made, to_make, (MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {names}"))


def repartition_counts(
    subtopologies: Iterable[StreamsGroupTopologyValueSubtopology], partition_count: PartitionCount
) -> dict[str, int]:
    """The partition counts of the repartition topics, before copartitioning."""
    counts = {t.name: t.partitions for s in subtopologies for t in s.repartition_source_topics if t.partitions}
    waiting = [(sink, s) for s in subtopologies for sink in s.repartition_sink_topics if sink not in counts]
    while waiting:
        later = []
        for sink, writer in waiting:
            if sink in counts:
                continue
            known = [counts[t.name] for t in writer.repartition_source_topics if t.name in counts]
            known += [n for t in writer.source_topics if (n := partition_count(t)) is not None]
            if known:
                counts[sink] = max(known)
            else:
                later.append((sink, writer))
        if len(later) == len(waiting):
            raise invalid(
                f"the partitions of {summary(sink for sink, _ in later)} cannot be decided: they depend on each other"
            )
        waiting = later
    for subtopology in subtopologies:
        for topic in subtopology.repartition_source_topics:
            if topic.name not in counts:
                raise invalid(f"no subtopology writes repartition topic {topic.name}")
    return counts


def copartition_groups(subtopology: StreamsGroupTopologyValueSubtopology) -> Iterator[frozenset[str]]:
    """Topics that are joined, and so need equal partition counts. The request names them by index."""
    for group in subtopology.copartition_groups:
        try:
            yield frozenset(
                [
                    *(subtopology.source_topics[i] for i in group.source_topics),
                    *(subtopology.repartition_source_topics[i].name for i in group.repartition_source_topics),
                ]
            )
        except IndexError:
            raise invalid(f"a copartition group of {subtopology.subtopology_id} names a missing topic") from None


def copartitioned(
    group: frozenset[str], fixed: set[str], flexible: set[str], count: Callable[[str], int]
) -> dict[str, int]:
    """The partition count of the repartition topics of a copartition group.

    | group                                                  | partitions                                             |
    |--------------------------------------------------------|--------------------------------------------------------|
    | with a source topic                                    | that of the source topics, which must be equal         |
    | repartition topics only, some fixed in the topology    | that of the fixed ones, which must be equal            |
    | repartition topics only, none fixed                    | the largest                                            |

    A fixed repartition topic with another count is an error. All fixed ones of the topology count, as in Kafka.
    """
    ours = {name: count(name) for name in sorted(group) if name in fixed or name in flexible}
    theirs = {name: count(name) for name in sorted(group) if name not in ours}
    if theirs:
        wanted = _all_the_same(theirs)
    elif fixed and ours:
        wanted = _all_the_same({name: count(name) for name in sorted(fixed)})
    else:
        wanted = max(ours.values(), default=0)
    for name, partitions in ours.items():
        if name in fixed and partitions != wanted:
            raise NotReadyError(
                INCORRECTLY_PARTITIONED_TOPICS,
                f"Repartition topic {name} has {partitions} partitions, and is read together with topics of {wanted}",
            )
    return dict.fromkeys(ours, wanted)


def _all_the_same(counts: Mapping[str, int]) -> int:
    found = set(counts.values())
    if len(found) > 1:
        listed = ", ".join(f"{name}={partitions}" for name, partitions in counts.items())
        raise NotReadyError(INCORRECTLY_PARTITIONED_TOPICS, f"Topics read together differ in partitions: {listed}")
    return found.pop()


def missing_topics(
    subtopologies: Iterable[ConfiguredSubtopology], partition_count: PartitionCount
) -> tuple[InternalTopic, ...]:
    """The internal topics to create; existing ones must have the partitions they need."""
    needed = {t.name: t for s in subtopologies for t in (*s.repartition_sources, *s.changelogs)}
    to_make = []
    for name, topic in needed.items():
        found = partition_count(name)
        if found is None:
            to_make.append(topic)
        elif found != topic.partitions:
            raise NotReadyError(
                INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has {found} partitions, and {topic.partitions} are needed",
            )
    return tuple(to_make)


def _internal(
    topics: Iterable[StreamsGroupTopologyValueTopicInfo], decided: Mapping[str, int]
) -> tuple[InternalTopic, ...]:
    return tuple(
        InternalTopic(
            t.name,
            t.partitions or decided[t.name],
            t.replication_factor or -1,
            _configs_of(t),
        )
        for t in sorted(topics, key=lambda t: t.name)
    )


def _configs_of(topic: StreamsGroupTopologyValueTopicInfo) -> dict[str, str]:
    configs = {config.key: config.value for config in topic.topic_configs or ()}
    if len(configs) != len(topic.topic_configs or ()):
        raise invalid(f"a config of topic {topic.name} is given twice")
    return configs


def check(topology: StreamsGroupTopologyValue) -> None:
    """Refuse what no group takes. Errors: STREAMS_INVALID_TOPOLOGY, INVALID_REQUEST."""
    if len({s.subtopology_id for s in topology.subtopologies}) < len(topology.subtopologies):
        raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, "Two subtopologies have the same id.")
    if topology.epoch < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The topology epoch is negative.")


def required_topics(topology: StreamsGroupTopologyValue) -> frozenset[str]:
    """All topics of the topology: creating or changing one concerns the group."""
    return frozenset(
        name
        for s in topology.subtopologies
        for name in (
            *s.source_topics,
            *(t.name for t in s.repartition_source_topics),
            *(t.name for t in s.state_changelog_topics),
        )
    )


def source_topics(topology: StreamsGroupTopologyValue) -> dict[str, str]:
    """Source topic -> the subtopology that reads it. Members commit offsets of these topics."""
    return {
        name: s.subtopology_id
        for s in topology.subtopologies
        for name in (*s.source_topics, *(t.name for t in s.repartition_source_topics))
    }


def is_same(one: StreamsGroupTopologyValue, other: StreamsGroupTopologyValue) -> bool:
    """Whether two topologies are the same; the order of their subtopologies does not matter."""
    if one.epoch != other.epoch or len(one.subtopologies) != len(other.subtopologies):
        return False
    theirs = {s.subtopology_id: s for s in other.subtopologies}
    return all(theirs.get(s.subtopology_id) == s for s in one.subtopologies)


def summary(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    found = sorted(names)
    more = len(found) - NAMES_SHOWN
    return ", ".join(found[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def invalid(why: str) -> KafkaError:
    """The error for a topology that no topics could make run."""
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, f"The topology is not valid: {why}")
