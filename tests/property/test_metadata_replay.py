"""Random admin requests: the log replayed gives the live state, at every batch, and so does its image."""

from __future__ import annotations

from admin_broker import AdminBroker
from budget import budget
from hypothesis import given
from hypothesis import strategies as st

from broker.handlers.admin_view import after_metadata
from broker.handlers.cluster import update_features
from broker.handlers.configs import alter_configs, incremental_alter_configs
from broker.handlers.metadata import metadata
from broker.handlers.quotas import alter_client_quotas
from broker.handlers.reassign import alter_partition_reassignments, elect_leaders
from broker.handlers.scram import alter_user_scram_credentials
from broker.handlers.topics import create_partitions, create_topics, delete_topics
from protocol.messages.cluster import (
    FeatureUpdateKey,
    MetadataRequest,
    MetadataRequestTopic,
    UpdateFeaturesRequest,
)
from protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasRequestEntryData, EntityData, OpData
from protocol.messages.reassign import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

names = st.sampled_from(["a", "b", "a.b", "a_b", "c d", "__transaction_state", "__consumer_offsets"])
keys = st.sampled_from(
    ["retention.ms", "cleanup.policy", "nope", "log.retention.ms", "max.connections", "consumer.session.timeout.ms"]
)
values = st.sampled_from(["46000", "50000", "compact", "delete", "x", ""])
resources = st.sampled_from([(2, "a"), (2, "a.b"), (4, ""), (4, "1"), (4, "2"), (32, "g"), (32, "")])
counts = st.integers(-2, 4)

create = st.builds(
    lambda topics: (create_topics, CreateTopicsRequest(topics=topics)),
    st.lists(
        st.builds(
            lambda name, count, factor, key, value: CreatableTopic(
                name=name,
                num_partitions=count,
                replication_factor=factor,
                configs=[CreatableTopicConfig(name=key, value=value)] if key != "nope" else [],
            ),
            names,
            counts,
            st.integers(-1, 3),
            keys,
            values,
        ),
        max_size=3,
    ),
)
delete = st.builds(
    lambda found: (delete_topics, DeleteTopicsRequest(topics=[DeleteTopicState(name=n) for n in found])),
    st.lists(names, max_size=2),
)
grow = st.builds(
    lambda name, count: (
        create_partitions,
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)]),
    ),
    names,
    st.integers(0, 6),
)
ask = st.builds(
    lambda found: (metadata, MetadataRequest(topics=[MetadataRequestTopic(name=n) for n in found])),
    st.lists(names, max_size=3),
)
change = st.builds(
    lambda resource, key, operation, value: (
        incremental_alter_configs,
        IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequestAlterConfigsResource(
                    resource_type=resource[0],
                    resource_name=resource[1],
                    configs=[
                        IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
                    ],
                )
            ]
        ),
    ),
    resources,
    keys,
    st.integers(0, 4),
    values,
)
replace = st.builds(
    lambda resource, found: (
        alter_configs,
        AlterConfigsRequest(
            resources=[
                AlterConfigsRequestAlterConfigsResource(
                    resource_type=resource[0],
                    resource_name=resource[1],
                    configs=[AlterConfigsRequestAlterableConfig(name=k, value=v) for k, v in found.items()],
                )
            ]
        ),
    ),
    resources,
    st.dictionaries(keys, values, max_size=2),
)
feature = st.builds(
    lambda level, kind: (
        update_features,
        UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey(feature="metadata.version", max_version_level=level, upgrade_type=kind)]
        ),
    ),
    st.integers(5, 32),
    st.integers(1, 3),
)


def take_producer_id(broker, ctx, request):
    """What InitProducerId does to the metadata."""
    producer_id, records = broker.metadata.next_producer_id()
    return after_metadata(broker, InitProducerIdResponse(producer_id=producer_id), records)


producer = st.just((take_producer_id, InitProducerIdRequest(transactional_id=None)))
users = st.sampled_from(["u", "v", ""])
mechanisms = st.integers(0, 2)
credential = st.builds(
    lambda drops, puts: (
        alter_user_scram_credentials,
        AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name=name, mechanism=mechanism) for name, mechanism in drops],
            upsertions=[
                ScramCredentialUpsertion(
                    name=name, mechanism=mechanism, iterations=4096, salt=b"s", salted_password=b"p"
                )
                for name, mechanism in puts
            ],
        ),
    ),
    st.lists(st.tuples(users, mechanisms), max_size=2),
    st.lists(st.tuples(users, mechanisms), max_size=2),
)
quota = st.builds(
    lambda entity, ops: (
        alter_client_quotas,
        AlterClientQuotasRequest(
            entries=[
                AlterClientQuotasRequestEntryData(
                    entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
                    ops=[OpData(key=key, value=value, remove=value == 3) for key, value in ops.items()],
                )
            ]
        ),
    ),
    st.dictionaries(st.sampled_from(["user", "client-id"]), st.sampled_from([None, "u"])),
    st.dictionaries(st.sampled_from(["producer_byte_rate", "request_percentage"]), st.integers(1, 3).map(float)),
)
move = st.builds(
    lambda name, index, replicas: (
        alter_partition_reassignments,
        AlterPartitionReassignmentsRequest(
            topics=[
                ReassignableTopic(
                    name=name, partitions=[ReassignablePartition(partition_index=index, replicas=replicas)]
                )
            ]
        ),
    ),
    names,
    st.integers(0, 3),
    st.one_of(st.none(), st.lists(st.integers(1, 3), max_size=3)),
)
elect = st.just((elect_leaders, ElectLeadersRequest(topic_partitions=None)))
requests = st.lists(
    st.one_of(create, delete, grow, ask, change, replace, feature, producer, credential, quota, move, elect),
    max_size=25,
)


@budget(20)
@given(requests)
def test_admin_requests_replayed_give_the_live_state(operations):
    broker = AdminBroker((1, 2))
    ids = {topic.topic_id for topic in broker.metadata.topics.values()}
    for handler, request in operations:
        topics = dict(broker.metadata.topics)
        broker.call(handler, request)
        made = {topic.topic_id for name, topic in broker.metadata.topics.items() if topics.get(name) is not topic}
        assert not made & ids, "a topic id was given twice"
        ids |= made
        check(broker)
    broker.check_reload()


def check(broker):
    """What must hold between any two requests."""
    state = broker.metadata
    assert len(state.topics_by_id) == len(state.topics)
    for topic in state.topics.values():
        assert topic.partitions
        assert [p.index for p in topic.partitions] == list(range(len(topic.partitions)))
        assert all(p.leader in p.replicas and set(p.replicas) <= {1, 2} for p in topic.partitions)
    assert len(state.topics["__consumer_offsets"].partitions) == 50
