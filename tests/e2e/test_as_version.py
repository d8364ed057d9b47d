"""Clusters that answer as older releases of Apache Kafka, and real clients on them."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_CREATE_TIME, Consumer, Producer, TopicPartition
from kafka import KafkaAdminClient
from momus_command import run_momus
from wire_peer import Peer

from broker.config.release_tables import RELEASES
from momus import Broker
from momus.control import ControlError
from protocol.messages.offsets import OffsetCommitRequest

# kafka-python knows 3.4 by an API that brokers without ZooKeeper do not have, and does not know 4.4
SEEN = {name: {"3.4": "3.3", "4.4": "4.3"}.get(name, name) for name, _, _ in RELEASES}

# librdkafka 2.16 cannot read the Metadata v0 of a topic with one letter: its buffer is made for longer responses
OLD_TOPIC = "topic-of-old-clients"


@pytest.fixture(scope="module")
def host():
    with Broker() as broker:
        yield broker
        assert (broker.stop(), broker.log) == (0, "")


@pytest.mark.parametrize("name", SEEN)
def test_version_probe_of_kafka_python_sees_the_release(host, name):
    with host.create_cluster(as_version=name) as cluster:
        client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        assert ".".join(map(str, client._manager.broker_version)) == SEEN[name]
        client.close()


@pytest.mark.parametrize("name", ["2.1", "2.4", "2.8", "3.3", "3.9", "4.0"])
def test_librdkafka_copies_records_exactly_once_on_the_release(host, name):
    with host.create_cluster(as_version=name) as cluster:
        config = cluster.client_config("confluent")
        cluster.create_topic("t")
        producer = Producer({**config, "transactional.id": "p"})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("t", "one")
        producer.commit_transaction()
        consumer = Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False})
        consumer.subscribe(["t"])
        while (message := consumer.poll(1)) is None or message.error():
            pass
        assert message.value() == b"one"
        consumer.commit(message)
        consumer.close()
        assert cluster.committed("g") == {("t", 0): 1}
        assert [record.value for record in cluster.consume("t", 1)] == [b"one"]  # the control plane knows no limits


@pytest.mark.parametrize("version", [0, 1])
def test_commit_of_a_version_that_kafka_4_has_dropped_is_refused_as_there(version):
    """Served without a release, for old clients; Apache Kafka 4 hangs up on a version that it does not serve."""
    request = OffsetCommitRequest(group_id="old", topics=[])
    with Broker() as broker, Peer(broker) as peer:
        assert peer.call(request, version).topics == []
    with Broker(as_version="4.4") as broker, Peer(broker) as peer:
        peer.send(request, version)
        assert peer.is_closed_by_broker()
        assert broker.stop() == 0
        assert f"API 8 version {version} is not served" in broker.log


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize(("version", "has_times"), [("0.8.2", False), ("0.9.0", False), ("0.10.0", True)])
def test_librdkafka_of_before_record_batches_produces_and_consumes(host, version, has_times, codec):
    with host.create_cluster(as_version="2.1") as cluster:
        config = cluster.client_config("confluent")
        config |= {"api.version.request": False, "broker.version.fallback": version, "log_level": 2}
        cluster.create_topic(OLD_TOPIC)
        producer = Producer({**config, "compression.type": codec, "linger.ms": 50})
        for at in range(100):
            producer.produce(OLD_TOPIC, b"v" * 50, b"%d" % at)
        assert producer.flush(10) == 0
        assert [record.key for record in cluster.consume(OLD_TOPIC, 100)] == [b"%d" % at for at in range(100)]
        consumer = Consumer({**config, "group.id": "g"})
        for begin in (OFFSET_BEGINNING, 50):
            consumer.assign([TopicPartition(OLD_TOPIC, 0, begin)])
            for at in range(max(begin, 0), 100):
                message = consumer.poll(10)
                assert message is not None
                assert message.error() is None
                assert (message.offset(), message.key(), message.value()) == (at, b"%d" % at, b"v" * 50)
                assert (message.timestamp()[0] == TIMESTAMP_CREATE_TIME) is has_times
        consumer.close()


def test_clusters_of_one_process_answer_as_different_releases(host):
    clusters = [host.create_cluster(as_version=name) for name in ("2.1", None, "4.0")]
    said = [run_momus("doctor", cluster.bootstrap_servers).stdout for cluster in clusters]
    for text, release in zip(said, ("2.1", "4.4", "4.0"), strict=True):
        assert f"it answers as Apache Kafka {release} does" in text
    for cluster in clusters:
        cluster.close()


def test_test_kit_takes_the_release_of_the_whole_process():
    with Broker(as_version="2.8") as broker:
        assert "Apache Kafka 2.8" in run_momus("doctor", broker.bootstrap_servers).stdout


def test_release_that_is_not_known_is_refused_in_words(host):
    with pytest.raises(ControlError, match=r"as\.version.*from 2\.1 to 4\.4"):
        host.create_cluster(as_version="1.0")
    done = run_momus("serve", "--as-version", "1.0", "--listen", "127.0.0.1:0", "--flush", "memory")
    assert done.returncode == 2
    assert "must be a release of Apache Kafka from 2.1 to 4.4" in done.stderr
