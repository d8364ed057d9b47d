"""Which topic is the dead-letter queue of a share group, and whether it may be written to.

| the topic                      | it may be written to                                                              |
|--------------------------------|-----------------------------------------------------------------------------------|
| begins with `__`               | never                                                                             |
| exists                         | if its errors.deadletterqueue.group.enable is true                                |
| does not exist                 | if errors.deadletterqueue.auto.create.topics.enable is true: it is made then      |
| does not begin with the prefix | never; the prefix is errors.deadletterqueue.topic.name.prefix, "" is that of all  |

Kafka looks at them in this order, each time that it writes, and says it in its log only. So a group may be given a
queue that does not exist yet.
Source: KIP-1191; Kafka's ShareGroupDLQStateManager.validateDlqTopic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.config.features import level_of

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata

TOPIC_NAME: Final = "errors.deadletterqueue.topic.name"
COPY: Final = "errors.deadletterqueue.copy.record.enable"
ENABLE: Final = "errors.deadletterqueue.group.enable"
AUTO_CREATE: Final = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"
SINCE_LEVEL: Final = 2  # of share.version
# of a queue that the broker makes, as Kafka's makes it
CONFIGS: Final = {ENABLE: "true", "message.timestamp.type": "CreateTime"}


def has_queue(metadata: ClusterMetadata, group_id: str) -> bool:
    """Whether what a group gives up is to go to a queue: it names one, and the feature share.version has the level."""
    configs = metadata.group_configs.get(group_id)
    if not configs or not configs.get(TOPIC_NAME, "").strip():
        return False
    return level_of("share.version", metadata.feature_levels) >= SINCE_LEVEL


def queue_of(metadata: ClusterMetadata, group_id: str) -> str:
    """The name of the topic that a group has set; "": none."""
    return str(metadata.group_value(group_id, TOPIC_NAME))


def wants_copies(metadata: ClusterMetadata, group_id: str) -> bool:
    """Whether key and value of the records go to the queue too."""
    return bool(metadata.group_value(group_id, COPY))


def objection(metadata: ClusterMetadata, group_id: str) -> str | None:
    """Why nothing can be written to the queue of a group, as things are set now; None: it can."""
    name, config = queue_of(metadata, group_id), metadata.config
    topic = metadata.topics.get(name)
    prefix = str(config.value(PREFIX))
    if not name:
        return f"the group's {TOPIC_NAME} is empty"
    if name.startswith("__"):
        return f"the name {name} begins with __"
    if topic is not None and not metadata.value(topic, ENABLE):
        return f"the topic {name} is not enabled for it: its {ENABLE} is false"
    if topic is None and not config.value(AUTO_CREATE):
        return f"the topic {name} does not exist, and {AUTO_CREATE} is false"
    if not name.startswith(prefix):
        return f"the name {name} does not begin with {prefix}, the {PREFIX}"
    return None
