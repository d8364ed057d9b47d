"""ApiVersions, UpdateFeatures, DescribeLogDirs and InitProducerId."""

from __future__ import annotations

import pytest
from admin_broker import AdminBroker

from broker.cluster import metadata as cluster_metadata
from broker.handlers.cluster import api_versions, describe_log_dirs, update_features
from broker.handlers.topics import create_topics
from broker.handlers.transactions import init_producer_id
from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest, FeatureUpdateKey, UpdateFeaturesRequest
from protocol.messages.log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.transactions import InitProducerIdRequest

HELLO = {"client_software_name": "test", "client_software_version": "1.0"}
WITH_ALL = [(26, 0, 5), (68, 0, 1), (88, 0, 0), (78, 1, 2)]


@pytest.mark.parametrize("version", range(6))
def test_versions_are_the_routing_tables_with_produce_from_zero(version):
    reply = AdminBroker().call(api_versions, ApiVersionsRequest(**HELLO), version)
    assert reply.error_code == 0
    assert [(k.api_key, k.min_version, k.max_version) for k in reply.api_keys] == [
        (0, 0, 13),
        (3, 0, 13),
        (18, 0, 5),
        (19, 2, 7),
    ]


@pytest.mark.parametrize("name", ["", "-a", "a b", "a_b", "a-", "é"])
def test_versions_refuse_a_wrong_software_name_from_v3(name):
    broker = AdminBroker()
    for wrong in ({**HELLO, "client_software_name": name}, {**HELLO, "client_software_version": name}):
        assert broker.call(api_versions, ApiVersionsRequest(**wrong), 3).error_code == 42
    assert broker.call(api_versions, ApiVersionsRequest(**wrong), 2).error_code == 0


ID = AdminBroker().cluster_id


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [  # as Apache Kafka 4.4.0 answers them
        (None, -1, 0),
        (ID, 1, 0),
        (ID, 2, 129),
        (ID, -2, 129),
        ("x", 1, 129),
        ("", 1, 129),
        (ID, -1, 42),
        (None, 1, 42),
        ("", -1, 42),
        ("x", -1, 42),
    ],
)
def test_client_that_means_another_cluster_or_node_is_told_to_bootstrap_from_v5(cluster_id, node_id, code):
    broker = AdminBroker()
    hello = ApiVersionsRequest(**HELLO, cluster_id=cluster_id, node_id=node_id)
    reply = broker.call(api_versions, hello, 5)
    assert (reply.error_code, bool(reply.api_keys), bool(reply.supported_features)) == (code, not code, not code)
    assert reply.finalized_features_epoch == (-1 if code else broker.metadata.version)
    assert broker.call(api_versions, hello, 4).error_code == 0


def test_each_virtual_broker_knows_its_own_node_id():
    broker = AdminBroker((1, 2))
    for asked in (1, 2):
        hello = ApiVersionsRequest(**HELLO, cluster_id=ID, node_id=asked)
        assert broker.call(api_versions, hello, 5, node_id=asked).error_code == 0
        assert broker.call(api_versions, hello, 5, node_id=3 - asked).error_code == 129


def features(broker, version=4):
    reply = broker.call(api_versions, ApiVersionsRequest(**HELLO), version)
    assert reply.finalized_features_epoch >= 0
    return (
        {f.name: (f.min_version, f.max_version) for f in reply.supported_features},
        {f.name: f.max_version_level for f in reply.finalized_features},
    )


def test_features_follow_from_the_apis_served():
    broker = AdminBroker()
    anywhere = {"metadata.version": (7, 33), "eligible.leader.replicas.version": (0, 1), "kraft.version": (0, 1)}
    assert features(broker) == (anywhere, {"metadata.version": 33, "eligible.leader.replicas.version": 1})
    broker.api_versions += WITH_ALL
    supported, finalized = features(broker)
    assert supported["transaction.version"] == (0, 2)
    assert finalized == {
        "metadata.version": 33,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 2,
        "streams.version": 1,
        "transaction.version": 2,
    }
    broker.api_versions[-4] = (26, 0, 4)
    assert features(broker)[0]["transaction.version"] == (0, 1)


def test_features_from_zero_are_left_out_before_v4():
    broker = AdminBroker()
    broker.api_versions += WITH_ALL
    assert set(features(broker, 3)[0]) == {"metadata.version"}


def update(broker, name, level, upgrade_type=1, version=2, **more):
    key = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type, **more)
    return broker.call(update_features, UpdateFeaturesRequest(feature_updates=[key]), version)


def test_feature_is_lowered_raised_and_survives_a_start():
    broker = AdminBroker()
    broker.api_versions += WITH_ALL
    assert update(broker, "transaction.version", 0, upgrade_type=2).error_code == 0
    assert "transaction.version" not in features(broker)[1]
    assert broker.reloaded().feature_levels["transaction.version"] == 0
    assert update(broker, "transaction.version", 1).error_code == 0
    assert features(broker)[1]["transaction.version"] == 1
    reply = update(broker, "transaction.version", 1, version=0)
    assert [(r.feature, r.error_code, r.error_message) for r in reply.results] == [("transaction.version", 0, "NONE")]
    broker.check_reload()


INVALID = "Invalid update version {level} for feature {name}. "
LOST = "Refusing to perform the requested downgrade because it might delete metadata information."
UNSAFE = "Unsafe metadata downgrade is not supported in this version."
BACK = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)


@pytest.mark.parametrize(
    ("name", "level", "kind", "why"),
    [  # as Apache Kafka 4.4.0 answers them
        ("metadata.version", 29, 1, f"{INVALID}{BACK}"),
        ("metadata.version", 29, 2, f"Unsupported metadata.version downgrade from 33 to 29. {LOST}"),
        ("metadata.version", 29, 3, f"Unsupported metadata.version downgrade from 33 to 29. {UNSAFE}"),
        ("metadata.version", 7, 2, f"Unsupported metadata.version downgrade from 33 to 7. {LOST}"),
        ("metadata.version", 6, 2, f"{INVALID}Local controller 1 only supports versions 7-33"),
        ("metadata.version", 33, 3, None),
        ("group.version", 0, 3, None),
        ("group.version", 0, 1, f"{INVALID}{BACK}"),
        ("group.version", 0, 4, f"{INVALID}The controller does not support the given upgrade type."),
        ("kraft.version", 1, 3, f"{INVALID}Can't downgrade to a newer version."),
        ("nope", 0, 1, f"{INVALID}Feature nope not found."),
        ("nope", 1, 1, f"{INVALID}Local controller 1 does not support this feature."),
    ],
)
def test_feature_update_is_answered_in_kafkas_words(name, level, kind, why):
    broker = AdminBroker()
    broker.api_versions += WITH_ALL
    for version in (1, 2):
        key = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        request = UpdateFeaturesRequest(feature_updates=[key], validate_only=True)
        reply = broker.call(update_features, request, version)
        if why is None:
            assert (reply.error_code, reply.error_message) == (0, None)
        else:
            head = "The update failed for all features since the following feature had an error: "
            assert (reply.error_code, reply.error_message) == (95, head + why.format(level=level, name=name))


def test_metadata_version_is_lowered_where_the_records_have_not_changed():
    broker = AdminBroker(as_version="4.0")
    assert update(broker, "metadata.version", 23, 2).error_code == 0
    assert update(broker, "metadata.version", 22, 2).error_code == 95
    assert features(broker)[1]["metadata.version"] == 23


def test_version_0_of_the_request_cannot_lower_a_level():
    broker = AdminBroker()
    broker.api_versions += WITH_ALL
    assert update(broker, "transaction.version", 0, version=0, allow_downgrade=True).error_code == 95


def test_last_of_several_updates_of_a_feature_counts():
    broker = AdminBroker()
    broker.api_versions += WITH_ALL
    good, refused = (
        FeatureUpdateKey(feature="group.version", max_version_level=level, upgrade_type=1) for level in (1, 0)
    )
    reply = broker.call(update_features, UpdateFeaturesRequest(feature_updates=[refused, good]), 1)
    assert (reply.error_code, [r.feature for r in reply.results]) == (0, ["group.version"] * 2)
    reply = broker.call(update_features, UpdateFeaturesRequest(feature_updates=[good, refused]), 1)
    assert (reply.error_code, features(broker)[1]["group.version"]) == (95, 1)


@pytest.mark.parametrize(
    ("name", "level", "upgrade_type"),
    [
        ("transaction.version", 1, 1),
        ("transaction.version", 3, 1),
        ("transaction.version", -1, 2),
        ("transaction.version", 1, 0),
        ("nope", 1, 1),
        ("metadata.version", 31, 1),
        ("metadata.version", 6, 2),
    ],
)
def test_feature_update_refused_leaves_all_as_it_was(name, level, upgrade_type):
    broker = AdminBroker()
    broker.api_versions += WITH_ALL
    before = features(broker)
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2),
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type),
        ]
    )
    reply = broker.call(update_features, request)
    assert reply.error_code == 95
    assert name in reply.error_message
    assert features(broker) == before


def test_log_dirs_tell_the_sizes_of_what_the_node_holds():
    broker = AdminBroker((1, 2))
    topics = [CreatableTopic(name="t", num_partitions=3, replication_factor=1)]
    broker.call(create_topics, CreateTopicsRequest(topics=topics))
    for node_id in (1, 2):
        reply = broker.call(describe_log_dirs, DescribeLogDirsRequest(topics=None), 5, node_id=node_id)
        (directory,) = reply.results
        found = {t.name: {p.partition_index: p.partition_size for p in t.partitions} for t in directory.topics}
        held = [p.index for p in broker.metadata.topics["t"].partitions if p.leader == node_id]
        assert found["t"] == {index: 100 + index for index in held}
        assert len(found["__consumer_offsets"]) == 25
        assert (directory.log_dir, directory.total_bytes, directory.usable_bytes) == ("/data", 5000, 3000)


def test_log_dirs_of_a_volume_that_cannot_be_asked_are_an_error():
    broker = AdminBroker()

    def fail():
        raise OSError(5, "Input/output error")

    broker.directory.volume_bytes = fail
    (directory,) = broker.call(describe_log_dirs, DescribeLogDirsRequest(topics=None), 5).results
    assert (directory.error_code, directory.log_dir, directory.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, "/data", [])
    assert (directory.total_bytes, directory.usable_bytes) == (-1, -1)


@pytest.mark.parametrize("version", range(1, 6))
def test_log_dirs_leave_out_what_is_not_there(version):
    broker = AdminBroker()
    topics = [
        DescribableLogDirTopic(topic="__consumer_offsets", partitions=[0, 99, -1]),
        DescribableLogDirTopic(topic="nope", partitions=[0]),
    ]
    reply = broker.call(describe_log_dirs, DescribeLogDirsRequest(topics=topics), version)
    (directory,) = reply.results
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in directory.topics] == [
        ("__consumer_offsets", [0])
    ]


def producer_id(broker, **fields):
    return broker.call(init_producer_id, InitProducerIdRequest(transactional_id=None, **fields))


def test_producer_ids_are_never_given_twice_over_starts(monkeypatch):
    block = 20
    monkeypatch.setattr(cluster_metadata, "PRODUCER_ID_BLOCK", block)
    broker = AdminBroker()
    given = [producer_id(broker).producer_id for _ in range(3)]
    for _ in range(3):
        broker.metadata = broker.reloaded()  # as after kill -9
        given += [producer_id(broker).producer_id for _ in range(block + 1)]
    assert len(set(given)) == len(given)
    assert broker.metadata.reserved_producer_id > max(given)


def test_producer_id_block_is_in_the_log_before_its_first_id_is_told():
    broker = AdminBroker()
    before = len(broker.batches)
    assert producer_id(broker).producer_id == 0
    assert len(broker.batches) == before + 1
    assert producer_id(broker).producer_id == 1
    assert len(broker.batches) == before + 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"producer_id": 5}, 42),
        ({"producer_epoch": 5}, 42),
        ({"producer_id": 5, "producer_epoch": 1}, 0),
    ],
)
def test_producer_id_and_epoch_come_together(fields, code):
    assert producer_id(AdminBroker(), **fields).error_code == code


def test_producer_id_for_an_empty_transactional_id_is_refused():
    reply = AdminBroker().call(init_producer_id, InitProducerIdRequest(transactional_id=""))
    assert (reply.error_code, reply.producer_id) == (42, -1)
