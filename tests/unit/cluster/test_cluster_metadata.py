"""The metadata state machine: what a start finds, and what it writes when the nodes or the settings have changed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from admin_broker import AdminBroker

from broker.base.context import Context
from broker.cluster.metadata import ClusterMetadata
from broker.cluster.metadata_plans import create_topic, delete_topic, place, start_up
from broker.cluster.topics import partition_record
from broker.config.settings import BrokerConfig, ConfigError
from protocol.messages.metadata_records import FeatureLevelRecord, NoOpRecord, decode_record, encode_record
from storage.files.sim_env import sim_env


def start(broker, node_ids, **settings):
    """The same log, started with other nodes or settings; answers the state and what the start wrote."""
    config = BrokerConfig.load({key.replace("_", "."): value for key, value in settings.items()})
    metadata = ClusterMetadata(config, node_ids, start_up=start_up)
    for batch in broker.batches:
        for value in batch:
            metadata.replay(None, value)
    records = [value for _, value in metadata.on_load(Context(0, broker.rng)).records]
    for value in records:
        metadata.replay(None, value)
    return metadata, records


def make(broker, name, count=1, factor=1, **configs):
    replicas = place(broker.metadata, 0, count, factor)
    _, records = create_topic(broker.metadata, broker.rng, name, replicas, configs)
    broker._apply([(None, value) for value in records])
    return broker.metadata.topics[name]


def test_new_log_begins_with_the_metadata_version_and_the_offsets_topic():
    broker = AdminBroker()
    first = decode_record(broker.batches[0][0])
    assert isinstance(first, FeatureLevelRecord)
    assert (first.name, first.feature_level) == ("metadata.version", 33)
    offsets = broker.metadata.topics["__consumer_offsets"]
    assert offsets.internal
    assert len(offsets.partitions) == 50
    assert offsets.configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


def test_start_without_change_writes_nothing():
    broker = AdminBroker()
    metadata, records = start(broker, [1])
    assert records == []
    assert metadata.fingerprint() == broker.metadata.fingerprint()


def test_frame_of_a_record_is_kafkas():
    # frame version 1, type 12, version 0; compact string "group.version", level 1, no tags
    record = FeatureLevelRecord(name="group.version", feature_level=1)
    assert encode_record(record, 0) == b"\x01\x0c\x00\x0egroup.version\x00\x01\x00"


def test_records_of_other_kinds_are_passed_over():
    broker = AdminBroker()
    before = broker.metadata.fingerprint()
    broker.metadata.replay(None, encode_record(NoOpRecord(), 0))
    assert broker.metadata.fingerprint() == before


def test_start_with_fewer_nodes_moves_leaders_with_a_new_epoch():
    broker = AdminBroker((1, 2, 3))
    make(broker, "t", 3)
    make(broker, "r", 3, 2)
    metadata, records = start(broker, [1, 2])
    assert records
    assert [(p.leader, p.leader_epoch) for p in metadata.topics["t"].partitions] == [(1, 0), (2, 0), (1, 1)]
    assert [p.replicas for p in metadata.topics["r"].partitions] == [[1, 2], [2], [1]]
    assert [p.leader_epoch for p in metadata.topics["r"].partitions] == [0, 0, 1]
    assert {p.leader for p in metadata.topics["__consumer_offsets"].partitions} == {1, 2}


def test_start_with_more_nodes_moves_nothing():
    broker = AdminBroker()
    assert start(broker, [1, 2])[1] == []


def test_start_with_another_number_of_offsets_partitions_is_refused_by_name():
    broker = AdminBroker(offsets_topic_num_partitions="10")
    assert start(broker, [1])[1] == []  # not said: the directory's number holds
    assert start(broker, [1], offsets_topic_num_partitions="10")[1] == []
    with pytest.raises(ConfigError, match=r"offsets\.topic\.num\.partitions.*made with 10") as error:
        start(broker, [1], offsets_topic_num_partitions="50")
    assert error.value.key == "offsets.topic.num.partitions"


def test_topic_id_in_use_is_not_given_again():
    broker = AdminBroker()
    other = make(broker, "other")
    offsets_id = broker.metadata.topics["__consumer_offsets"].topic_id
    for metadata in (broker.metadata, broker.reloaded()):
        drawn = iter([other.topic_id, offsets_id, b"n" * 16])
        repeats = SimpleNamespace(uuid_bytes=lambda drawn=drawn: next(drawn))
        topic, _ = create_topic(metadata, repeats, "t", [[1]], {})
        assert topic.topic_id == b"n" * 16


def test_listeners_are_told_of_changes_in_order():
    broker = AdminBroker()
    told = []
    broker.metadata.listeners.append(lambda event, topic, index: told.append((event, topic.name)))
    topic = make(broker, "t", 2, **{"retention.ms": "5"})
    broker._apply([(None, value) for value in delete_topic(topic)])
    assert told == [("created", "t"), ("configured", "t"), ("deleted", "t")]


def test_partitions_out_of_order_are_a_fault_of_the_log():
    broker = AdminBroker()
    topic = make(broker, "t")
    stray = topic.partitions[0]
    stray.index = 5
    with pytest.raises(AssertionError):
        broker.metadata.replay(None, partition_record(topic.topic_id, stray))


def test_values_of_topics_are_cached_until_something_changes():
    broker = AdminBroker()
    topic = make(broker, "t", **{"segment.bytes": "2000000", "internal.segment.bytes": "1000"})
    assert broker.metadata.value(topic, "segment.bytes") == 1000
    assert topic.values == {"segment.bytes": 1000}


def test_rng_of_the_environment_makes_version_4_ids():
    topic_id = create_topic(AdminBroker().metadata, sim_env(seed=3).rng, "t", [[1]], {})[0].topic_id
    assert topic_id[6] >> 4 == 4
