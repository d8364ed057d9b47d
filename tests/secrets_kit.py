"""A cluster in which everything that can have a name has one that can be recognized, made twice: "open-" and "hidden-".

A test then says what a client may see of it, sends requests, and looks for the names in the answers.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from core_broker import Client, World, make_topic
from core_requests import GROUP_RESOURCE, alter_request, commit_request, produce_request
from txn_kit import Producer

from broker.config.authorizer_setting import CLASS
from broker.coordinator.groups.consumer.embedded_protocol import write_assignment
from protocol.messages.acls import AclCreation, CreateAclsRequest
from protocol.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from protocol.messages.delegation_tokens import CreatableRenewers, CreateDelegationTokenRequest
from protocol.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasRequestEntryData, EntityData, OpData
from protocol.messages.scram import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from protocol.messages.share_fetch import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeRequestAcknowledgementBatch,
    ShareAcknowledgeRequestAcknowledgePartition,
    ShareAcknowledgeRequestAcknowledgeTopic,
    ShareFetchRequest,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
)
from protocol.messages.share_group import ShareGroupHeartbeatRequest
from protocol.messages.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from protocol.messages.streams_group import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestEndpoint,
    StreamsGroupHeartbeatRequestKeyValue,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTaskIds,
    StreamsGroupHeartbeatRequestTaskOffset,
    StreamsGroupHeartbeatRequestTopicInfo,
    StreamsGroupHeartbeatRequestTopology,
)

PREFIXED, LITERAL, ALLOW, ALL = 4, 3, 3, 2
PARTITIONS = 3
START_MS = 60_000  # after the cluster's start: what is asked begins at the same time, whatever there is
GROUP_KINDS = ("classic", "consumer", "share", "streams", "offsets", "read")
OF_TOPIC, OF_GROUP, OF_ID, OF_CLUSTER = "topic", "group", "transactional id", "cluster"
SETTINGS = {
    "authorizer_class_name": CLASS,
    "super_users": "User:admin;User:open-requester;User:hidden-requester",
    "listeners": "SASL_PLAINTEXT://:9092",
    "sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl_jaas_config": 'org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="a";',
    "delegation_token_secret_key": "key",
    "auto_create_topics_enable": "false",
}


class Secrets:
    """The cluster. `tokens`: each name, id and value that can be told -> the kinds of things whose rights it takes."""

    def __init__(self, *prefixes: str, mixed: bool = False) -> None:
        self.world = World("memory", **SETTINGS)
        self.admin = self.client("User:admin")
        self.tokens: dict[bytes, frozenset[str]] = {}
        self.hidden: dict[bytes, frozenset[str]] = {}  # those of them with the prefix "hidden"
        self.ids: dict[str, bytes] = {}  # of topics
        self.scripts: list[list[Any]] = []  # requests in the last version, one after the other on one connection
        for prefix in prefixes:
            before = len(self.tokens)
            self._fill(prefix)
            if prefix == "hidden":
                self.hidden = dict(list(self.tokens.items())[before:])
        if mixed:  # a group and a transaction that may be seen, of a topic that may not
            self.admin.connection.host = "/open-address"
            self._modern_group("open-mixed", "hidden-topic", "open-mixed-member")
            self._transaction("open-mixed-tx", "hidden-topic")
        self.world.advance(START_MS - self.world.clock.steady_ms())

    def client(self, principal: str) -> Client:
        """A new connection of a principal that has authenticated."""
        made = Client(self.world)
        made.connection.principal = principal
        return made

    def allow(self, *rights: tuple[int, str, int]) -> None:
        """Allow alice all operations: (resource type, name, pattern type)."""
        rules = [
            AclCreation(
                resource_type=kind,
                resource_name=name,
                resource_pattern_type=pattern,
                principal="User:alice",
                host="*",
                operation=ALL,
                permission_type=ALLOW,
            )
            for kind, name, pattern in rights
        ]
        assert not any(each.error_code for each in self.admin.call(CreateAclsRequest(creations=rules)).results)

    # -- what there is

    def _fill(self, prefix: str) -> None:
        self.admin.connection.host = f"/{prefix}-address"
        self._hide(OF_GROUP, f"{prefix}-address")
        topic = f"{prefix}-topic"
        for name in (topic, f"{prefix}-other"):
            self.ids[name] = make_topic(self.admin, name, PARTITIONS)
            self._hide(OF_TOPIC, name)
            self.tokens[self.ids[name]] = frozenset((OF_TOPIC,))
        self.admin.call(produce_request(topic, 0, f"{prefix}-record".encode()), 9)
        self._hide(OF_TOPIC, f"{prefix}-record")
        self._hide(OF_GROUP, *(f"{prefix}-{kind}" for kind in GROUP_KINDS), f"{prefix}-instance", f"{prefix}-client")
        self._hide(OF_GROUP, f"{prefix}-member", f"{prefix}-process", f"{prefix}-tag")
        self.tokens[f"{prefix}-metadata".encode()] = frozenset((OF_GROUP, OF_TOPIC))
        self.admin.call(commit_request(f"{prefix}-offsets", {0: 1, 1: 2}, topic, f"{prefix}-metadata"), 8)
        self._classic_group(prefix, topic)
        self._modern_group(f"{prefix}-consumer", topic, f"{prefix}-member", prefix)
        self._share_group(prefix, topic)
        self._streams_group(prefix, topic)
        self._transaction(f"{prefix}-tx", topic)
        self._hide(OF_ID, f"{prefix}-tx")
        self._principals(prefix)

    def _hide(self, kind: str, *names: str) -> None:
        self.tokens.update((name.encode(), frozenset((kind,))) for name in names)

    def _call(self, request: Any, version: int, prefix: str) -> Any:
        answer = self.admin.call(request, version, client_id=f"{prefix}-client")
        assert not getattr(answer, "error_code", 0), answer
        return answer

    def _classic_group(self, prefix: str, topic: str) -> None:
        name = topic.encode()
        subscription = b"\0\0\0\0\0\1" + len(name).to_bytes(2, "big") + name + b"\xff\xff\xff\xff"
        joining = JoinGroupRequest(
            group_id=f"{prefix}-classic",
            session_timeout_ms=600_000,
            rebalance_timeout_ms=600_000,
            member_id="",
            group_instance_id=f"{prefix}-instance",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )
        joined = self._call(joining, 9, prefix)
        self._hide(OF_GROUP, joined.member_id)
        sync = SyncGroupRequest(
            group_id=f"{prefix}-classic",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=f"{prefix}-instance",
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=joined.member_id, assignment=write_assignment({topic: (0, 1, 2)}, 3)
                )
            ],
        )
        self._call(sync, 5, prefix)
        again = copy(joining)
        again.member_id = joined.member_id
        self.scripts.append([again])

    def _modern_group(self, group: str, topic: str, member: str, prefix: str = "open") -> None:
        joining = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=0,
            instance_id=f"{prefix}-instance",
            rack_id=f"{prefix}-rack",
            rebalance_timeout_ms=600_000,
            subscribed_topic_names=[topic],
            subscribed_topic_regex=f"{topic}.*",
            topic_partitions=[],
        )
        self._hide(OF_GROUP, f"{prefix}-rack")
        self._call(joining, 1, prefix)

    def _share_group(self, prefix: str, topic: str) -> None:
        for group in ("share", "read"):
            earliest = {"share.auto.offset.reset": "earliest"}
            self._call(alter_request(GROUP_RESOURCE, f"{prefix}-{group}", earliest), 1, prefix)
        joining = ShareGroupHeartbeatRequest(
            group_id=f"{prefix}-share",
            member_id=f"{prefix}-member",
            member_epoch=0,
            rack_id=f"{prefix}-rack",
            subscribed_topic_names=[topic],
        )
        self._call(joining, 1, prefix)
        rows = [AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)]
        wanted = [AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=rows)]
        reading = copy(joining)
        reading.group_id = f"{prefix}-read"
        self._call(reading, 1, prefix)
        reading.member_epoch = -1
        self._call(reading, 1, prefix)
        self._call(AlterShareGroupOffsetsRequest(group_id=f"{prefix}-read", topics=wanted), 0, prefix)

        self.scripts.append(self._share_script(f"{prefix}-share", f"{prefix}-member", self.ids[topic]))

    @staticmethod
    def _share_script(group: str, member: str, topic_id: bytes) -> list[Any]:
        """Opens a share session, fetches, and acknowledges."""
        part = ShareFetchRequestFetchPartition(partition_index=0, acknowledgement_batches=[])
        fetches = [
            ShareFetchRequest(
                group_id=group,
                member_id=member,
                share_session_epoch=epoch,
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=1 << 20,
                max_records=10,
                batch_size=10,
                topics=[ShareFetchRequestFetchTopic(topic_id=topic_id, partitions=[part])],
            )
            for epoch in range(2)
        ]
        batch = ShareAcknowledgeRequestAcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
        done = ShareAcknowledgeRequestAcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
        topics = [ShareAcknowledgeRequestAcknowledgeTopic(topic_id=topic_id, partitions=[done])]
        return [
            *fetches,
            ShareAcknowledgeRequest(group_id=group, member_id=member, share_session_epoch=2, topics=topics),
        ]

    def _streams_group(self, prefix: str, topic: str) -> None:
        names = [f"{prefix}-changelog", f"{prefix}-repartition"]
        self._hide(OF_TOPIC, *names)
        self._hide(OF_GROUP, f"{prefix}-subtopology")
        config = [StreamsGroupHeartbeatRequestKeyValue(key="retention.ms", value="777123456")]
        changelog, repartition = (
            StreamsGroupHeartbeatRequestTopicInfo(name=name, partitions=count, topic_configs=config)
            for count, name in enumerate(names)
        )
        shape = StreamsGroupHeartbeatRequestSubtopology(
            subtopology_id=f"{prefix}-subtopology",
            source_topics=[topic],
            source_topic_regex=[],
            repartition_source_topics=[repartition],
            repartition_sink_topics=[names[1]],
            state_changelog_topics=[changelog],
            copartition_groups=[],
        )
        joining = StreamsGroupHeartbeatRequest(
            group_id=f"{prefix}-streams",
            member_id=f"{prefix}-member",
            member_epoch=0,
            rack_id=f"{prefix}-rack",
            rebalance_timeout_ms=600_000,
            topology=StreamsGroupHeartbeatRequestTopology(epoch=1, subtopologies=[shape]),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id=f"{prefix}-process",
            user_endpoint=StreamsGroupHeartbeatRequestEndpoint(host=f"{prefix}-endpoint", port=1),
            client_tags=[StreamsGroupHeartbeatRequestKeyValue(key=f"{prefix}-tag", value=f"{prefix}-tag")],
        )
        self._hide(OF_GROUP, f"{prefix}-endpoint")
        first = copy(joining)
        first.instance_id = f"{prefix}-instance"
        answer = self._call(first, 0, prefix)
        beat = StreamsGroupHeartbeatRequest(group_id=f"{prefix}-streams", member_id=f"{prefix}-member")
        given = None
        for _ in range(4):  # until the internal topics are there and the tasks are given out
            self.world.advance(2000)
            beat.member_epoch, given = answer.member_epoch, answer.active_tasks or given
            answer = self._call(beat, 0, prefix)
        assert given
        beat.member_epoch = answer.member_epoch
        beat.active_tasks = [
            StreamsGroupHeartbeatRequestTaskIds(subtopology_id=each.subtopology_id, partitions=each.partitions)
            for each in given
        ]
        beat.standby_tasks, beat.warmup_tasks = [], []
        offset = StreamsGroupHeartbeatRequestTaskOffset(subtopology_id=shape.subtopology_id, partition=0, offset=1)
        beat.task_offsets = beat.task_end_offsets = [offset]
        self._call(beat, 0, prefix)
        other, lacking, missing = copy(joining), copy(shape), f"{prefix}-missing"
        lacking.source_topics = [missing]
        other.group_id, other.topology = f"{prefix}-new", copy(joining.topology)
        other.topology.subtopologies = [lacking]
        self._hide(OF_TOPIC, missing)
        self.scripts += [[joining], [other]]

    def _transaction(self, name: str, topic: str) -> None:
        producer = Producer(self.admin, name)
        assert producer.init(timeout_ms=900_000) == 0
        assert producer.produce(b"value", topic=topic) == 0

    def _principals(self, prefix: str) -> None:
        user = f"{prefix}-user"
        self._hide(OF_CLUSTER, user)
        upsert = ScramCredentialUpsertion(
            name=user, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"p" * 32
        )
        self.admin.call(AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsert]), 0)
        entry = AlterClientQuotasRequestEntryData(
            entity=[EntityData(entity_type="user", entity_name=user)],
            ops=[OpData(key="consumer_byte_rate", value=1e9)],
        )
        self.admin.call(AlterClientQuotasRequest(entries=[entry]), 1)
        rule = AclCreation(
            resource_type=2,
            resource_name=f"{prefix}-topic",
            resource_pattern_type=LITERAL,
            principal=f"User:{user}",
            host=f"{prefix}-host",
            operation=3,
            permission_type=ALLOW,
        )
        self._hide(OF_CLUSTER, f"{prefix}-host")
        assert not self.admin.call(CreateAclsRequest(creations=[rule])).results[0].error_code
        wanted = CreateDelegationTokenRequest(
            owner_principal_type="User",
            owner_principal_name=user,
            renewers=[CreatableRenewers(principal_type="User", principal_name=f"{prefix}-renewer")],
            max_lifetime_ms=-1,
        )
        self._hide(OF_CLUSTER, f"{prefix}-renewer", f"{prefix}-requester")
        token = self.client(f"User:{prefix}-requester").call(wanted, 3)
        assert not token.error_code
        self._hide(OF_CLUSTER, token.token_id)
        self.tokens[token.hmac] = frozenset((OF_CLUSTER,))
