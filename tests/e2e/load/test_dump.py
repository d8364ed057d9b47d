"""`momus dump`: dump, load, dump is the same text; and all that a copy has otherwise is said."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from load_kit import write_orders

from momus import Broker


def dump(broker, *arguments: str) -> tuple[str, str]:
    """What a dump prints, and what it says of what it could not read."""
    command = [sys.executable, "-m", "momus", "dump", "-b", broker.bootstrap_servers, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def fails(broker, *arguments: str) -> str:
    command = [sys.executable, "-m", "momus", "dump", "-b", broker.bootstrap_servers, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def produce_all_kinds(broker) -> None:
    """Keys, values and headers that a file has to keep apart."""
    broker.create_topic("kinds", 2, config={"cleanup.policy": "compact,delete", "retention.ms": -1})
    values = [
        "text",
        "5",
        '{"a":1.50}',
        '{"a":1.5}',
        '{"a":1,"a":2}',
        "[1, 2]",
        "[]",
        '{"base64":"AAEC"}',
        "{",
        None,
        "",
    ]
    for number, value in enumerate([*values, b"\xff", "\u2028\x85\x00\ufeff", "yes", "null", "~", " padded ", "a\nb"]):
        for header in ({}, {"h": "x", "n": None, "b": b"\xfe"}, [("a", "1"), ("a", "2")]):
            broker.produce("kinds", value, key=f"k{number}", headers=header, partition=number % 2, timestamp_ms=10**12)


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_dump_load_dump_is_the_same_text(kafka_broker, make_kafka_broker, tmp_path, ending):
    kafka_broker.load(write_orders(tmp_path))
    produce_all_kinds(kafka_broker)
    first, second = tmp_path / f"1.{ending}", tmp_path / f"2.{ending}"
    dump(kafka_broker, "-o", str(first))
    copy = make_kafka_broker(load=first)
    _, said = dump(copy, "-o", str(second))
    assert first.read_text() == second.read_text()
    assert said == ""
    shown = [(each.partition, each.key, each.value, each.headers, each.timestamp_ms) for each in copy.consume("kinds")]
    assert shown == [
        (each.partition, each.key, each.value, each.headers, each.timestamp_ms)
        for each in kafka_broker.consume("kinds")
    ]
    assert copy.committed("billing") == kafka_broker.committed("billing")


def test_patterns_times_and_numbers_choose(kafka_broker):
    for name in ("a-1", "a-2", "b"):
        for number in range(6):
            kafka_broker.produce(name, str(number), timestamp_ms=10**12 + number * 1000)
    text, _ = dump(kafka_broker, "-t", "a-*", "--since", str(10**12 + 2000), "--max-records", "3")
    found = {each["name"]: [row["value"] for row in each["records"]] for each in json.loads(text)["topics"]}
    assert found == {"a-1": ["3", "4", "5"], "a-2": ["3", "4", "5"]}
    text, _ = dump(kafka_broker, "-t", "b", "--since", str(10**12 + 4000))
    assert [row["value"] for row in json.loads(text)["topics"][0]["records"]] == ["4", "5"]
    assert "there is no topic c*" in fails(kafka_broker, "-t", "c*")
    assert "there is no group g" in fails(kafka_broker, "-g", "g")


def test_masked_values_have_no_letter_of_theirs(kafka_broker):
    value = '{"card":"4111 Ann-Öz","paid":true,"n":[7,null]}'
    kafka_broker.produce("t", value, "Secret 7", b"\x00\xff\x01", None, key="kept", headers={"h": "pin 5"})
    text, _ = dump(kafka_broker, "--mask-values")
    rows = json.loads(text)["topics"][0]["records"]
    assert [row["value"] for row in rows] == [
        {"card": "0000 xxx-xx", "paid": False, "n": [0, None]},
        "xxxxxx 0",
        {"base64": "////"},
        None,
    ]
    assert {json.dumps([row["key"], row["headers"]]) for row in rows} == {'["kept", {"h": "xxx 0"}]'}


def test_offsets_that_begin_above_0_are_said_and_committed_ones_count_from_there(kafka_broker, tmp_path):
    load = {
        "topics": [{"name": "t", "records": [{"value": n} for n in range(10)]}, {"name": "other"}],
        "groups": [
            {"name": "g", "offsets": [{"topic": "t", "offset": 7}, {"topic": "other", "offset": 0}]},
            {"name": "early", "offsets": [{"topic": "t", "offset": 1}]},
            {"name": "ahead", "offsets": [{"topic": "t", "offset": 12}]},
        ],
    }
    kafka_broker.load(load)
    text, said = dump(kafka_broker, "-t", "t", "--max-records", "5")
    found = json.loads(text)
    assert {each["name"]: each["offsets"][0]["offset"] for each in found["groups"]} == {"g": 2, "early": 0, "ahead": 7}
    assert "not dumped: group g: offsets of topics that are not dumped: other" in said
    from momus.client.kafka_client import Client
    from protocol.messages.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic

    wanted = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=4)])
    with Client(kafka_broker.bootstrap_servers) as client:
        client._call(None, DeleteRecordsRequest(topics=[wanted], timeout_ms=10_000))
    text, said = dump(kafka_broker)
    assert "t-0: it begins at offset 4, in a copy at 0, and committed offsets count from there" in said
    found = json.loads(text)
    assert {each["name"]: each["offsets"][-1]["offset"] for each in found["groups"]} == {"g": 3, "early": 0, "ahead": 8}
    assert any("begins at offset 4" in note for note in found["not_dumped"])


def test_transactions_leave_their_committed_records(kafka_broker):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers, "transactional.id": "x"})
    producer.init_transactions()
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction, lambda: None)):
        producer.begin_transaction()
        producer.produce("t", str(number).encode())
        producer.flush()
        end()
    text, said = dump(kafka_broker)
    producer.abort_transaction()
    assert [row["value"] for row in json.loads(text)["topics"][0]["records"]] == ["0"]
    assert "t-0: 3 offsets that hold no record to read" in said
    assert "t-0: records from offset 4 on, of a transaction that is open" in said


def test_users_acls_and_quotas_of_a_cluster_with_security(tmp_path):
    load = {
        "topics": [{"name": "t"}],
        "users": [{"name": "alice", "password": "wonder"}],
        "acls": [
            {"principal": "User:alice", "operation": "read", "resource": "topic", "name": "t", "pattern": "prefixed"},
            {"principal": "User:*", "operation": "all", "resource": "group", "name": "*", "permission": "deny"},
        ],
        "quotas": [
            {"user": "<default>", "client_id": "app", "request_percentage": 12.5},
            {"ip": "127.0.0.9", "connection_creation_rate": 3},
        ],
    }
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    words = ["-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=PLAIN", "-X", "sasl.username=admin"]
    words += ["-X", "sasl.password=root"]
    users = {"admin": "root", "alice": "wonder"}
    with Broker(security="sasl_plaintext", users={"admin": "root"}, load=load, flush="memory") as broker:
        _, said = dump(broker, "-o", str(first), *words)
        assert said == "not dumped: passwords of users: admin, alice\n"
    found = json.loads(first.read_text())
    assert found["users"] == [{"name": "admin"}, {"name": "alice"}]
    assert found["acls"] == [
        {"principal": "User:*", "operation": "all", "resource": "group", "name": "*", "permission": "deny"},
        {"principal": "User:alice", "operation": "read", "resource": "topic", "name": "t", "pattern": "prefixed"},
    ]
    assert found["quotas"] == [
        {"ip": "127.0.0.9", "connection_creation_rate": 3},
        {"client_id": "app", "user": "<default>", "request_percentage": 12.5},
    ]
    found["users"] = []
    (tmp_path / "without.json").write_text(json.dumps(found))
    with Broker(security="sasl_plaintext", users=users, load=tmp_path / "without.json", flush="memory") as broker:
        dump(broker, "-o", str(second), *words)
    assert first.read_text() == second.read_text()


def test_name_of_the_file_says_what_it_is(kafka_broker, tmp_path):
    assert "TOML has no null" in fails(kafka_broker, "-o", str(tmp_path / "a.toml"))
    assert "name it .json or .yaml" in fails(kafka_broker, "-o", str(tmp_path / "a.txt"))
    assert list(tmp_path.iterdir()) == []


def test_schema_is_printed_and_takes_a_dump(kafka_broker, tmp_path):
    import jsonschema
    import yaml
    from load_kit import ORDERS

    printed = subprocess.check_output([sys.executable, "-m", "momus", "load-schema"], text=True)
    schema = json.loads(printed)
    kafka_broker.load(write_orders(tmp_path))
    produce_all_kinds(kafka_broker)
    for document in (json.loads(dump(kafka_broker)[0]), yaml.safe_load(ORDERS.replace("2026-01-01T00:00Z", "'5'"))):
        jsonschema.validate(document, schema)
        document["topics"][0]["partitons"] = 3
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, schema)
