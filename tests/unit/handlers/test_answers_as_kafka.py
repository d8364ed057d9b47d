"""Small things that Apache Kafka 4.3.1 answers, each found by comparing random requests with it."""

from __future__ import annotations

import pytest
from answers_kit import INVALID_REQUEST, described
from core_broker import Client, World, make_topic
from core_requests import fetch_request, produce_request
from txn_kit import Producer

from protocol.errors import ErrorCode
from protocol.messages.cluster import MetadataRequest, MetadataRequestTopic
from protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.fetch import FetchPartition
from protocol.messages.log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.messages.reassign import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ElectLeadersRequestTopicPartitions,
    ReassignableTopic,
)
from protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.transaction_admin import DescribeProducersRequest, DescribeProducersRequestTopicRequest
from protocol.messages.transactions import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

# -- Fetch


@pytest.mark.parametrize("epoch", [-1, -2, -(2**31)])
def test_fetch_with_a_negative_leader_epoch_names_none(client, epoch):
    client.call(produce_request("t", 0, b"x"), 9)
    request = fetch_request("t", 0, 0)
    request.topics[0].partitions[0].current_leader_epoch = epoch
    for _ in range(3):  # the shortcut learns the request
        answer = client.call(request, 12).responses[0].partitions[0]
        assert (answer.error_code, answer.high_watermark) == (0, 1)


def test_fetch_of_a_diverging_log_lists_no_aborted_transactions_not_even_none(client):
    client.call(produce_request("t", 0, b"x"), 9)
    request = fetch_request("t", 0, 1, isolation_level=1)
    request.topics[0].partitions[0].last_fetched_epoch = 0
    request.topics[0].partitions[0].fetch_offset = 7
    answer = client.call(request, 12).responses[0].partitions[0]
    assert answer.diverging_epoch.end_offset == 1
    assert answer.aborted_transactions is None


@pytest.mark.parametrize("kind", [0, 1, 3, 99])
# -- administration


def test_describe_configs_of_one_unknown_type_describes_nothing(client, kind):
    assert described(client, (2, "t"), (kind, "x"), (4, "1")) == [(INVALID_REQUEST, False)] * 3
    assert described(client, (2, "t"), (2, "nope"))[0] == (0, True)


@pytest.mark.parametrize("name", ["a/b", "", ".", "x" * 250])
def test_describe_producers_of_an_illegal_name_says_so(client, name):
    topics = [DescribeProducersRequestTopicRequest(name=each, partition_indexes=[0]) for each in (name, "t", "nope")]
    answer = client.call(DescribeProducersRequest(topics=topics), 0)
    assert [each.partitions[0].error_code for each in answer.topics] == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("topics", [[], [ReassignableTopic(name="nope")]])
def test_reassignments_say_whether_the_replication_factor_may_change_and_yes_without_topics(client, asked, topics):
    request = AlterPartitionReassignmentsRequest(timeout_ms=1000, allow_replication_factor_change=asked, topics=topics)
    assert client.call(request, 1).allow_replication_factor_change is (asked or not topics)


def test_election_of_an_unknown_type_is_refused_unless_nothing_is_to_be_elected(client):
    def code(partitions: list[ElectLeadersRequestTopicPartitions] | None) -> int:
        request = ElectLeadersRequest(election_type=9, topic_partitions=partitions, timeout_ms=1000)
        return int(client.call(request, 2).error_code)

    assert code([]) == 0
    assert code(None) == INVALID_REQUEST
    assert code([ElectLeadersRequestTopicPartitions(topic="t", partitions=[0])]) == INVALID_REQUEST


def test_delete_records_of_a_partition_that_is_named_twice_counts_the_last_offset(client):
    client.call(produce_request("t", 0, b"x", b"y"), 9)

    def deleted(*rows: tuple[int, int]) -> list[tuple[int, int, int]]:
        topics = [
            DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)])
            for index, offset in rows
        ]
        answer = client.call(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2)
        return [(p.partition_index, p.error_code, p.low_watermark) for row in answer.topics for p in row.partitions]

    assert deleted((0, 9), (1, 0), (0, 1)) == [(0, 0, 1), (1, 0, 0)]
    assert deleted((0, 2), (0, 9)) == [(0, ErrorCode.OFFSET_OUT_OF_RANGE, -1)]


def test_describe_log_dirs_of_a_topic_that_is_named_twice_tells_all_its_partitions(client):
    rows = [DescribableLogDirTopic(topic="t", partitions=indexes) for indexes in ([0], [], [1, 0])]
    answer = client.call(DescribeLogDirsRequest(topics=rows), 2).results[0]
    assert [(row.name, [p.partition_index for p in row.partitions]) for row in answer.topics] == [("t", [0, 1])]


def test_markers_without_partitions_are_left_out(client):
    def marker(producer_id: int, *topics: WritableTxnMarkerTopic) -> WritableTxnMarker:
        return WritableTxnMarker(producer_id=producer_id, topics=list(topics))

    nope = WritableTxnMarkerTopic(name="nope", partition_indexes=[0])
    nothing = WritableTxnMarkerTopic(name="t", partition_indexes=[])
    request = WriteTxnMarkersRequest(markers=[marker(1), marker(2, nothing), marker(3, nothing, nope), marker(4, nope)])
    answer = client.call(request, 1)
    assert [(each.producer_id, [topic.name for topic in each.topics]) for each in answer.markers] == [
        (3, ["nope"]),
        (4, ["nope"]),
    ]


@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        ("cleanup.policy", " compact", "compact"),
        ("cleanup.policy", "delete,delete", "delete"),
        ("min.cleanable.dirty.ratio", "1", "1.0"),
        ("retention.ms", "+5000", "5000"),
        ("preallocate", "TRUE", "true"),
    ],
)
def test_created_topic_shows_configs_as_they_were_sent(client, key, value, stored):
    topic = CreatableTopic(
        name="c", num_partitions=1, replication_factor=1, configs=[CreatableTopicConfig(name=key, value=value)]
    )
    answer = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7).topics[0]
    assert {each.name: each.value for each in answer.configs}[key] == value
    rows = [DescribeConfigsResource(resource_type=2, resource_name="c", configuration_keys=[key])]
    (config,) = client.call(DescribeConfigsRequest(resources=rows), 4).results[0].configs
    assert config.value == stored


# -- Metadata


@pytest.mark.parametrize("version", [12, 13])
def test_metadata_by_ids_takes_no_offence_at_a_topic_without_name_and_id(client, version):
    topic_id = client.world.broker.metadata.topics["t"].topic_id
    nameless, by_id = MetadataRequestTopic(name=None), MetadataRequestTopic(name=None, topic_id=topic_id)
    answer = client.call(MetadataRequest(topics=[nameless, by_id, nameless]), version)
    assert [(topic.error_code, topic.name) for topic in answer.topics] == [(0, "t")]
    answer = client.call(MetadataRequest(topics=[nameless, MetadataRequestTopic(name="t")]), version)
    assert {topic.error_code for topic in answer.topics} == {INVALID_REQUEST}


# -- transactions


@pytest.mark.parametrize("version", range(6))
def test_txn_offset_commit_without_a_transactional_id_is_an_invalid_request(client, version):
    producer = Producer(client)
    producer.init()
    producer.name = ""
    assert producer.send_offsets({0: 1, 9: 1}, version=version) == {
        0: INVALID_REQUEST,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_commit_that_meets_the_coordinators_own_abort_is_illegal(client):
    """As in Kafka 4.3.1 and 4.4.0; KAFKA-20785, which both are older than, makes it PRODUCER_FENCED."""
    producer = Producer(client)
    producer.init(timeout_ms=1000)
    producer.send_offsets({0: 1})
    client.world.advance(1001)
    assert producer.end() == ErrorCode.INVALID_TXN_STATE
    assert (producer.end(commit=False), producer.epoch) == (0, 1)


@pytest.mark.parametrize(("most", "aborted"), [(1, None), (0, []), (1 << 20, [])])
@pytest.mark.parametrize("shortcuts", [True, False])
def test_fetch_of_a_batch_that_does_not_fit_names_no_aborted_transactions(most, aborted, shortcuts):
    client = Client(World("os", shortcuts=shortcuts))
    make_topic(client, partitions=2)
    for index in (0, 1):
        client.call(produce_request("t", index, b"x"), 9)
    request = fetch_request("t", 0, 0, isolation_level=1)
    request.topics[0].partitions.append(FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=most))
    for _ in range(3):  # the shortcut learns the request
        first, second = client.call(request, 12).responses[0].partitions
        assert first.aborted_transactions == []
        assert second.aborted_transactions == aborted


# -- What has no id


@pytest.mark.parametrize(("producer_id", "epoch", "transactions"), [(-1, 0, 0), (7, -1, 0), (7, 0, -1)])
def test_marker_of_no_producer_and_of_no_version_is_not_written(client, producer_id, epoch, transactions):
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=[0])
    marker = WritableTxnMarker(
        producer_id=producer_id, producer_epoch=epoch, transaction_version=transactions, topics=[topic]
    )
    (answer,) = client.call(WriteTxnMarkersRequest(markers=[marker]), 2).markers
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert client.call(fetch_request("t", 0, 0), 12).responses[0].partitions[0].high_watermark == 0


@pytest.mark.parametrize("transactions", [-128, -2, 0, 3, 127])
def test_marker_of_any_other_version_is_written(client, transactions):
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=[0])
    marker = WritableTxnMarker(producer_id=7, producer_epoch=0, transaction_version=transactions, topics=[topic])
    (answer,) = client.call(WriteTxnMarkersRequest(markers=[marker]), 2).markers
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert client.call(fetch_request("t", 0, 0), 12).responses[0].partitions[0].high_watermark == 1
