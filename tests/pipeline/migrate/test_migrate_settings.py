"""What a migration copies beside topics and offsets, from Apache Kafka and from momus, and what it says it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import apache_kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from source_broker import commit, committed, config, settings
from test_migrate import migrated
from test_migrate_to_kafka import wait_for

from momus import Broker
from pipeline.errors import PipelineError
from pipeline.migrate.settings import Acl, Quota
from pipeline.migrate.target_settings import TargetSettings
from pipeline.source.segment_ranges import scan

pytestmark = pytest.mark.timeout(900)
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
RECORDS = 40
SHARED = 12  # start offset of the share group
GROUP_SETTINGS = {"share-readers": {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "7"}}
ACLS = [
    Acl(2, "orders", 3, "User:alice", "*", 3, 3),  # READ on a topic, allowed
    Acl(3, "share-", 4, "User:alice", "*", 3, 3),  # READ on groups by prefix
]
QUOTAS = [
    Quota((("client-id", "loud"),), "consumer_byte_rate", 2048.0),
    Quota((("client-id", "loud"),), "producer_byte_rate", 1024.0),
    Quota((("user", None),), "producer_byte_rate", 4096.0),
]


def fill(address: str) -> None:
    """Records, a group and its past, a share group, and all kinds of settings."""
    admin = AdminClient(settings(address))
    topics = [
        NewTopic("orders", 1, 1, config={"retention.ms": "-1", "segment.ms": "123456789"}),
        NewTopic("__own", 1, 1),
        NewTopic("scratch", 1, 1),
    ]
    for made in admin.create_topics(topics).values():
        made.result(60)
    writer = Producer({**settings(address), "transactional.id": "writer"})  # its marker makes offsets differ
    writer.init_transactions(60)
    writer.begin_transaction()
    writer.produce("orders", b"first", partition=0)
    writer.commit_transaction(60)
    look, place = Consumer({**settings(address), "group.id": "look"}), TopicPartition("orders", 0)
    while look.get_watermark_offsets(place, timeout=60)[1] < 2:  # Apache Kafka writes the marker later
        continue
    look.close()
    plain = Producer(settings(address))
    for n in range(RECORDS):
        plain.produce("orders", b"%d" % n, partition=0)
    assert plain.flush(60) == 0
    commit(address, "readers", [("orders", 0, 10, "early")])
    commit(address, "readers", [("orders", 0, 30, "late"), ("scratch", 0, 0, "")])
    with TargetSettings(address) as client:
        client.set_group_settings(GROUP_SETTINGS)
        client.add_acls(ACLS)
        client.set_quotas(QUOTAS)
        client.set_share_offsets("share-readers", {("orders", 0): SHARED})
    password = UserScramCredentialUpsertion(
        "alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"secret", b"salt salt salt"
    )
    [done] = admin.alter_user_scram_credentials([password]).values()
    done.result(60)


def early(directory: Path) -> str:
    """When the group committed for the first time."""
    rows = [row for batch in scan(str(directory), "offsets") for row in batch.to_pylist()]
    [found] = [row["timestamp"] for row in rows if (row["group"], row["commit_offset"]) == ("readers", 10)]
    return str(found.isoformat())


@pytest.fixture(scope="module")
def momus_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    with Broker(data_dir=folder, config=AUTHORIZED) as broker:
        fill(broker.bootstrap_servers)
    return folder


@pytest.fixture(scope="module")
def kafka_source(tmp_path_factory: pytest.TempPathFactory, kafka_libs: str) -> Path:
    folder = tmp_path_factory.mktemp("kafka")
    more = "share.coordinator.state.topic.replication.factor=1\nshare.coordinator.state.topic.min.isr=1\n"
    more += "".join(f"{name}={text}\n" for name, text in AUTHORIZED.items())
    with apache_kafka(kafka_libs, folder, more) as address:
        wait_for(address)
        fill(address)
    return folder / "logs"


@pytest.fixture
def target() -> Iterator[str]:
    with Broker(config=AUTHORIZED) as broker:
        yield broker.bootstrap_servers


def everything(address: str) -> dict[str, Any]:
    """What a cluster has, by its own word."""
    with TargetSettings(address) as client:
        return {
            "share": client.share_starts("share-readers", {("orders", 0): 0}),
            "groups": {
                group: dict(found) for group, found in client.group_settings(GROUP_SETTINGS).items()
            },
            "acls": client.acls(),
            "quotas": client.quotas(),
        }  # fmt: skip  # a line each


@pytest.mark.parametrize("kind", ["momus_source", "kafka_source"])
def test_migrate_share_groups_settings_acls_and_quotas_are_copied_and_proven(
    spark, request, kind, target, tmp_path, capsys
):
    source = request.getfixturevalue(kind)
    words = ("--topic", "orders", "--exclude-config", "segment.*", "--topic-config", "max.message.bytes=2000000")

    code, proof = migrated(spark, source, target, tmp_path / "proof.json", *words)

    assert (code, proof["equal"]) == (0, True)
    assert everything(target) == {
        "share": {("orders", 0): SHARED - 1},  # less the marker
        "groups": GROUP_SETTINGS,
        "acls": {tuple(each) for each in ACLS},
        "quotas": {(each.entity, each.key): each.value for each in QUOTAS},
    }
    [share] = proof["share_groups"]
    assert (share["source_start_offset"], share["read_back"], share["equal"]) == (SHARED, SHARED - 1, True)
    assert [len(proof[name]) for name in ("group_settings", "acls", "quotas")] == [2, len(ACLS), len(QUOTAS)]
    assert config(target, "orders", "max.message.bytes", "segment.ms") == ["2000000", "604800000"]
    left = {(each["kind"], each["name"]) for each in proof["not_copied"]}
    # Apache Kafka sets this one when it is formatted.
    assert left - {("broker setting", "min.insync.replicas of all brokers")} == {
        ("SCRAM password", "alice, SCRAM-SHA-256"),
        ("topic", "__own"),
        ("topic", "scratch"),
        ("topic setting", "segment.ms of orders"),
        ("offsets", "of 1 groups on scratch"),
    }
    assert "not copied: SCRAM password alice, SCRAM-SHA-256: a cluster does not store" in capsys.readouterr().err


def test_migrate_dry_run_lists_all_of_it_and_makes_nothing(spark, momus_source, target, tmp_path):
    before = everything_there(target)

    code, proof = migrated(spark, momus_source, target, tmp_path / "proof.json", "--dry-run")

    assert (code, proof["refused"]) == (0, [])
    assert everything_there(target) == before
    assert [each["topic"] for each in proof["topics"]] == ["__own", "orders", "scratch"]
    assert {each["log"]: each["records"] for each in proof["partitions"]}["orders-0"] == RECORDS + 1
    assert [(each["group"], each["source_offset"], each["target_offset"]) for each in proof["groups"]] == [
        ("readers", 30, 29),
        ("readers", 0, 0),
    ]
    assert [each["target_start_offset"] for each in proof["share_groups"]] == [SHARED - 1]
    assert [len(proof[name]) for name in ("group_settings", "acls", "quotas")] == [2, len(ACLS), len(QUOTAS)]
    assert [each["kind"] for each in proof["not_copied"]] == ["SCRAM password"]


def everything_there(address: str) -> tuple[Any, ...]:
    with TargetSettings(address) as client:
        return client.topics(), client.groups(), client.acls(), client.quotas(), client.group_settings(GROUP_SETTINGS)


def test_migrate_what_the_target_refuses_is_told_before_anything_is_made(spark, momus_source, tmp_path):
    with Broker() as other:  # without an authorizer
        address = other.bootstrap_servers
        with pytest.raises(PipelineError, match=r"nothing was made: the source has ACLs, and .*--without acls"):
            migrated(spark, momus_source, address, tmp_path / "proof.json")
        with TargetSettings(address) as client:
            assert [each["name"] for each in client.topics() if not each["internal"]] == []

        code, proof = migrated(spark, momus_source, address, tmp_path / "proof.json", "--without", "acls")

    assert (code, proof["acls"]) == (0, [])
    assert ("acls", "2 of them") in {(each["kind"], each["name"]) for each in proof["not_copied"]}


def test_migrate_group_with_members_is_told_before_anything_is_made(spark, momus_source, target, tmp_path):
    admin = AdminClient(settings(target))  # a future ends only while its client lives
    admin.create_topics([NewTopic("other", 1, 1)])["other"].result(20)
    member = Consumer({**settings(target), "group.id": "readers"})
    member.subscribe(["other"])
    while not member.assignment():
        member.poll(0.1)

    with pytest.raises(PipelineError, match="nothing was made: group readers has members in the target"):
        migrated(spark, momus_source, target, tmp_path / "proof.json")
    member.close()

    with TargetSettings(target) as client:
        assert [each["name"] for each in client.topics() if not each["internal"]] == ["other"]


def test_migrate_target_with_another_first_record_is_told_before_anything_is_made(
    spark, momus_source, target, tmp_path
):
    producer = Producer(settings(target))
    producer.produce("scratch", b"somebody else's")
    producer.produce("orders", b"somebody else's")
    producer.flush(20)

    with pytest.raises(PipelineError) as refused:
        migrated(spark, momus_source, target, tmp_path / "proof.json")

    assert "orders-0 of the target holds something else: its record 0 is not the source's at offset 0" in str(
        refused.value
    )
    assert "scratch-0 of the target has 1 records, the source only 0" in str(refused.value)
    with TargetSettings(target) as client:
        assert "__own" not in {each["name"] for each in client.topics()}


def test_migrate_offsets_only_of_a_time_sets_those_and_copies_nothing(spark, momus_source, target, tmp_path):
    source, only = momus_source, ("--topic", "orders", "--offsets-only")
    with pytest.raises(PipelineError, match="nothing was made: topic orders is not in the target"):
        migrated(spark, source, target, tmp_path / "proof.json", *only)
    assert migrated(spark, source, target, tmp_path / "all.json", "--topic", "orders")[0] == 0
    assert committed(target, "readers", [("orders", 0)]) == [(29, "late")]

    code, proof = migrated(spark, source, target, tmp_path / "proof.json", *only, "--as-of", early(momus_source))

    assert (code, proof["equal"], proof["compared"]) == (0, True, False)
    assert committed(target, "readers", [("orders", 0)]) == [(9, "early")]
    assert [(each["source_offset"], each["read_back"]) for each in proof["groups"]] == [(10, 9)]
    assert proof["share_groups"] == []  # it was set later than that
    assert ("quotas", "3 of them") in {(each["kind"], each["name"]) for each in proof["not_copied"]}
