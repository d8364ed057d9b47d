"""What a sample holds, as clients see it: the same function writes it down beside a sample and reads it back."""

from __future__ import annotations

from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from momus import Broker

WAIT_S = 60
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "group.initial.rebalance.delay.ms": 0,
    # samples are opened years later
    "log.retention.ms": -1,
    "offsets.retention.minutes": 2**31 - 1,
    "log.cleaner.enable": "false",
}
ANY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def state_of(cluster: Broker) -> dict[str, Any]:
    """Topics with settings and readable records, committed offsets, users and ACLs, in forms that JSON keeps."""
    admin = AdminClient(cluster.client_config("confluent"))
    metadata = admin.list_topics(timeout=WAIT_S)
    names = sorted(name for name in metadata.topics if not name.startswith("__"))
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
    configs = {of.name: found.result() for of, found in admin.describe_configs(resources).items()}
    groups = sorted(group.group_id for group in admin.list_consumer_groups().result().valid)
    committed = {}
    for group in groups:
        asked = [ConsumerGroupTopicPartitions(group)]
        (found,) = admin.list_consumer_group_offsets(asked).values()
        committed[group] = sorted(
            [each.topic, each.partition, each.offset, each.metadata or ""] for each in found.result().topic_partitions
        )
    users = admin.describe_user_scram_credentials().result()
    acls = admin.describe_acls(ANY_ACL).result()
    return {
        "topics": {
            name: {
                "partitions": len(metadata.topics[name].partitions),
                "config": {
                    key: entry.value for key, entry in sorted(configs[name].items()) if entry.source == TOPIC_CONFIG
                },
                "committed": rows(cluster, name, "committed"),
                "uncommitted": rows(cluster, name, "uncommitted"),
            }
            for name in names
        },
        "committed": committed,
        "users": {
            name: [[each.mechanism.name, each.iterations] for each in user.scram_credential_infos]
            for name, user in sorted(users.items())
        },
        "acls": sorted(str(each) for each in acls),
    }


TOPIC_CONFIG = 1  # the source of a setting that was made for the topic


def rows(cluster: Broker, topic: str, isolation: str) -> list[list[Any]]:
    """All records that can be read."""
    found = cluster.consume(topic, isolation=isolation)
    return sorted([each.partition, each.offset, text(each.key), text(each.value), each.timestamp_ms] for each in found)


def text(data: bytes | None) -> str | None:
    """Keys and values of the samples are text."""
    return None if data is None else data.decode()
