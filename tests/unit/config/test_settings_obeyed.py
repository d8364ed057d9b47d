"""Settings that no other test would miss: each changes what a broker does. `noticed_by*.py` list all."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request, committed, fetch_request, produce_request
from txn_kit import state_of

from broker.cluster.data.log_settings import log_config
from broker.config.config_defs import UNITS
from broker.config.settings import BROKER_KEYS, TOPIC_KEYS, BrokerConfig
from protocol.messages.cluster import DescribeTopicPartitionsRequest, DescribeTopicPartitionsRequestTopicRequest
from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.transactions import InitProducerIdRequest
from protocol.record_batch import build_batch

# topic key -> (field of LogConfig, a value that is not the default)
LOG_FIELDS = {
    "segment.bytes": ("segment_bytes", 1 << 20),
    "segment.ms": ("segment_ms", 12_345),
    "segment.index.bytes": ("segment_index_bytes", 1200),
    "index.interval.bytes": ("index_interval_bytes", 99),
    "retention.ms": ("retention_ms", 54_321),
    "retention.bytes": ("retention_bytes", 77_777),
    "min.cleanable.dirty.ratio": ("min_cleanable_dirty_ratio", 0.25),
    "min.compaction.lag.ms": ("min_compaction_lag_ms", 11),
    "max.compaction.lag.ms": ("max_compaction_lag_ms", 22_222),
    "delete.retention.ms": ("delete_retention_ms", 33),
    "max.message.bytes": ("max_message_bytes", 4444),
    "max.decompressed.message.bytes": ("max_record_bytes", 3333),
    "flush.messages": ("flush_messages", 5),
    "flush.ms": ("flush_ms", 6666),
}


def create(client: Client, name: str = "t", **configs: str) -> Any:
    rows = [CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
    wanted = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, configs=rows)
    return client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7).topics[0]


def config_of(world: World, name: str = "t") -> Any:
    return log_config(world.broker.metadata, world.broker.metadata.topics[name])


@pytest.mark.parametrize(("key", "expected"), LOG_FIELDS.items())
@pytest.mark.parametrize("by_broker", [False, True])
def test_topic_key_reaches_its_log(key, expected, by_broker):
    field, value = expected
    if by_broker:
        world = World(**{TOPIC_KEYS[key][4].replace(".", "_"): str(value)})
        create(Client(world))
    else:
        world = World()
        assert create(Client(world), **{key: str(value)}).error_code == 0
    assert getattr(config_of(world), field) == value


@pytest.mark.parametrize("topic_key", [key for key, row in TOPIC_KEYS.items() if row[4] in BROKER_KEYS])
def test_broker_key_is_the_default_of_its_topic_key(topic_key):
    row = TOPIC_KEYS[topic_key]
    other = {"BOOLEAN": "true", "LIST": "compact", "DOUBLE": "0.125"}.get(row[1], "7000000")
    other = {
        "compression.type": "zstd",
        "message.timestamp.type": "LogAppendTime",
        "compression.gzip.level": "5",
        "compression.lz4.level": "5",
        "compression.zstd.level": "5",
    }.get(topic_key, other)
    world = World(**{row[4].replace(".", "_"): other})
    create(Client(world))
    value = world.broker.metadata.value(world.broker.metadata.topics["t"], topic_key)
    assert str(value) == other or value == (other,) or value is (other == "true")


@pytest.mark.parametrize(
    ("key", "factor", "topic_key"),
    [
        (key, factor, topic_key)
        for topic_key, row in TOPIC_KEYS.items()
        for key, factor in UNITS.get(row[4], ())
        if factor > 1
    ],
)
def test_coarser_unit_counts_where_the_finer_is_not_set(key, factor, topic_key):
    world = World(**{key.replace(".", "_"): "3"})
    create(Client(world))
    assert world.broker.metadata.value(world.broker.metadata.topics["t"], topic_key) == 3 * factor


def write_keys(world: World, client: Client) -> Any:
    """A compacted topic with two sealed records of one key."""
    create(client, **{"cleanup.policy": "compact"})
    for _ in range(2):
        request = produce_request("t", 0, b"v")
        request.topic_data[0].partition_data[0].records = build_batch([(b"k", b"v")], timestamp_ms=1)
        assert client.call(request, 9).responses[0].partition_responses[0].error_code == 0
    log = world.broker.directory.logs["t", 0]
    log.roll()
    return log


@pytest.mark.parametrize(("enabled", "left"), [("true", 1), ("false", 2)])
def test_cleaner_that_is_disabled_cleans_nothing(enabled, left):
    world = World(log_cleaner_enable=enabled)
    log = write_keys(world, Client(world))
    world.advance(60_000)
    assert sum(header.record_count for header, _ in log.batches(0)) == left


@pytest.mark.parametrize("backoff_ms", [1000, 30_000])
def test_cleaner_looks_again_after_its_backoff(backoff_ms):
    world = World(log_cleaner_backoff_ms=str(backoff_ms))
    log = write_keys(world, Client(world))
    world.advance(backoff_ms - 1)
    assert log.cleaned_offset == 0
    world.advance(1)
    assert log.cleaned_offset == 2


@pytest.mark.parametrize(("most", "looked_up", "left"), [("2147483639", 0, 1), ("1000", 87, 2)])
def test_log_with_a_larger_record_is_not_cleaned_nor_looked_up_by_time(most, looked_up, left):
    """As Apache Kafka 4.4.0, where the topic's limit was lowered after a record of 2000 bytes had come compressed."""
    world = World(max_decompressed_message_bytes=most)
    client = Client(world)
    create(client, **{"cleanup.policy": "compact", "max.decompressed.message.bytes": "2147483639"})
    large = build_batch([(b"k", b"x" * 2000)], timestamp_ms=1_700_000_000_000, attributes=1)
    produce = produce_request("t", 0)
    produce.topic_data[0].partition_data[0].records = large
    for _ in range(2):
        assert client.call(produce, 9).responses[0].partition_responses[0].error_code == 0
    log = world.broker.directory.logs["t", 0]
    log.roll()
    change = IncrementalAlterConfigsRequestAlterableConfig(name="max.decompressed.message.bytes", value=most)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
    assert client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0
    asked = ListOffsetsPartition(partition_index=0, timestamp=1)
    answer = client.call(ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[asked])]), 7)
    assert answer.topics[0].partitions[0].error_code == looked_up
    world.advance(60_000)
    assert sum(header.record_count for header, _ in log.batches(0)) == left


@pytest.mark.parametrize("interval_ms", [1000, 30_000])
def test_retention_looks_again_after_its_interval(interval_ms):
    world = World(log_retention_check_interval_ms=str(interval_ms))
    client = Client(world)
    create(client, **{"retention.ms": "1"})
    client.call(produce_request("t", 0, b"v"), 9)
    world.advance(interval_ms - 1)
    assert world.broker.directory.logs["t", 0].log_start_offset == 0
    world.advance(1)
    assert world.broker.directory.logs["t", 0].log_start_offset == 1


@pytest.mark.parametrize("interval_ms", [1000, 30_000])
def test_recovery_points_are_written_after_their_interval(interval_ms):
    world = World(log_flush_offset_checkpoint_interval_ms=str(interval_ms))
    client = Client(world)
    create(client)
    client.call(produce_request("t", 0, b"v"), 9)
    world.advance(interval_ms - 1)
    assert world.broker.directory.recovery_point(("t", 0)) == 0
    world.advance(1)
    assert world.broker.directory.recovery_point(("t", 0)) == 1


@pytest.mark.parametrize(("slots", "has_session"), [("0", False), ("10", True)])
def test_fetch_sessions_need_a_slot(slots, has_session):
    client = Client(World(max_incremental_fetch_session_cache_slots=slots))
    create(client)
    request = fetch_request("t", 0, 0)
    request.session_epoch = 0
    assert (client.call(request, 12).session_id > 0) is has_session


@pytest.mark.parametrize(("limit_ms", "code"), [("60000", 0), ("59999", 50)])
def test_transaction_timeout_is_bounded(limit_ms, code):
    client = Client(World(transaction_max_timeout_ms=limit_ms))
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    assert client.call(request, 4).error_code == code


@pytest.mark.parametrize(
    ("topic", "key"),
    [
        ("__consumer_offsets", "offsets_topic_replication_factor"),
        ("__transaction_state", "transaction_state_log_replication_factor"),
    ],
)
def test_internal_topics_have_the_replication_factor_that_was_set(topic, key):
    world = World(brokers=3, **{key: "2"})
    client = Client(world)
    client.call(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 4)
    assert len(world.broker.metadata.topics[topic].partitions[0].replicas) == 2


@pytest.mark.parametrize(
    ("topic", "key"),
    [
        ("__consumer_offsets", "offsets_topic_segment_bytes"),
        ("__transaction_state", "transaction_state_log_segment_bytes"),
    ],
)
def test_internal_topics_have_the_segment_size_that_was_set(topic, key):
    world = World(**{key: "2000000"})
    Client(world).call(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 4)
    assert config_of(world, topic).segment_bytes == 2_000_000


def test_broker_answers_under_the_node_id_that_was_set():
    world = World(node_id="42")
    assert world.broker.metadata.topics["__consumer_offsets"].partitions[0].replicas == [42]


def test_directory_and_older_name_of_the_node_id_are_read():
    assert BrokerConfig.load({"log.dir": "/a"}).data_dir == "/a"
    assert BrokerConfig.load({"log.dir": "/a", "log.dirs": "/b,/c"}).data_dir == "/b"
    assert BrokerConfig.load({"broker.id": "7"}).node_id == 7


def test_description_of_partitions_is_cut_at_the_limit():
    client = Client(World(max_request_partition_size_limit="2"))
    make_topic(client, "t", 3)
    wanted = DescribeTopicPartitionsRequestTopicRequest(name="t")
    request = DescribeTopicPartitionsRequest(topics=[wanted], response_partition_limit=100)
    assert len(client.call(request, 0).topics[0].partitions) == 2


@pytest.mark.parametrize("interval_ms", [60_000, 120_000])
def test_offsets_expire_with_the_check_after_their_retention(interval_ms):
    world = World(offsets_retention_check_interval_ms=str(interval_ms), offsets_retention_minutes="1")
    client = Client(world)
    make_topic(client)
    client.call(commit_request("g", {0: 1}), 8)
    world.advance(interval_ms - 1)
    assert committed(world, "g") == {0: 1}
    world.advance(interval_ms + 1)
    assert committed(world, "g") == {}


def test_offsets_topic_has_the_partitions_that_were_set():
    world = World(offsets_topic_num_partitions="7")
    assert len(world.broker.metadata.topics["__consumer_offsets"].partitions) == 7


def test_transactional_ids_expire_with_the_check_after_their_expiration():
    world = World(
        transactional_id_expiration_ms="60000", transaction_remove_expired_transaction_cleanup_interval_ms="40000"
    )
    client = Client(world)
    client.call(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 4)
    world.advance(79_000)
    assert state_of(client).error_code == 0
    world.advance(2000)
    assert state_of(client).error_code == 105
