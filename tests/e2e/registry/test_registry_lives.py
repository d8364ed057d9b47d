"""The registry of a broker: where it is, what becomes of it in kills, restarts and snapshots, and other writers."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from registry_client import RegistryClient

from momus import Broker
from momus.control import ControlError

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
WIDER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}


@pytest.fixture
def broker():
    with Broker(registry=True) as broker:
        yield broker


@pytest.fixture
def registry(broker):
    return RegistryClient(broker.registry_url)


def contents(registry):
    return (
        registry.ask("GET", "/schemas?deleted=true"),
        registry.ask("GET", "/config/orders"),
        registry.ask("GET", "/mode"),
        registry.ask("GET", "/associations/resources/cluster/-"),
    )


def fill(registry):
    registry.register("orders", ORDER)
    registry.register("orders", WIDER)
    registry.register("bills", '{"type":"object"}', schemaType="JSON")
    registry.ask("DELETE", "/subjects/bills")
    registry.ask("PUT", "/config/orders", {"compatibility": "FULL"})
    for name, rows in {"orders": [{"subject": "orders"}], "paid": [{"schema": {"schema": '"int"'}}]}.items():
        resource = {"resourceName": name, "resourceNamespace": "cluster", "resourceId": name}
        registry.ask("POST", "/associations", {**resource, "associations": rows})
    registry.ask("PUT", "/mode", {"mode": "READONLY"})
    found = contents(registry)
    assert [row["lifecycle"] for row in found[3]] == ["WEAK", "STRONG"]
    return found


def test_state_survives_kill_and_restart_on_the_same_port(broker, registry):
    before = fill(registry)
    assert len(before[0]) == 3
    broker.kill()
    broker.start()
    assert broker.registry_url == registry.url
    assert contents(registry) == before
    broker.restart()
    assert contents(registry) == before


def test_snapshot_restore_reset_and_fork_take_the_registry_along(broker, registry):
    before = fill(registry)
    broker.snapshot("full")
    broker.reset()
    assert registry.ask("GET", "/subjects?deleted=true") == []
    assert registry.register("other", ORDER)["id"] == 1
    broker.restore("full")
    assert contents(registry) == before
    fork = broker.fork()
    other = RegistryClient(fork.registry_url)
    assert other.url != registry.url
    assert contents(other) == before
    other.ask("PUT", "/mode", {"mode": "READWRITE"})
    other.register("orders", {**WIDER, "doc": "of the fork"})
    assert contents(registry) == before


def test_clusters_have_registries_of_their_own(broker, registry):
    registry.register("orders", ORDER)
    with broker.create_cluster(registry=True) as cluster:
        other = RegistryClient(cluster.registry_url)
        assert other.ask("GET", "/subjects") == []
        assert other.register("bills", WIDER)["id"] == 1
    assert registry.ask("GET", "/subjects") == ["orders"]


def test_registry_is_served_from_the_first_time_that_it_is_asked_for():
    with Broker() as broker:
        assert broker.control.ask("GET", "/_admin/registry") == {}
        url = broker.registry_url
        assert broker.control.ask("GET", "/_admin/registry") == {"url": url}
        assert broker.registry_url == url
        assert RegistryClient(url).ask("GET", "/subjects") == []


def test_topic_is_made_by_the_first_write_and_has_confluents_settings(broker, registry):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    registry.ask("GET", "/subjects")
    assert "_schemas" not in admin.list_topics()
    registry.register("orders", ORDER)
    (row,) = admin.describe_topics(["_schemas"])
    assert len(row["partitions"]) == 1
    admin.close()


def test_direct_writes_of_another_registry_are_seen_and_ours_are_read_by_it(broker, registry):
    registry.register("orders", ORDER)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    key = {"keytype": "SCHEMA", "subject": "theirs", "version": 4, "magic": 1}
    value = {"subject": "theirs", "version": 4, "id": 70, "schema": '"int"', "deleted": False}
    producer.send("_schemas", json.dumps(value).encode(), json.dumps(key).encode()).get(60)
    producer.send("_schemas", b"no JSON", b"neither").get(60)
    producer.close()
    assert registry.ask("GET", "/subjects/theirs/versions") == [4]
    assert registry.register("orders", WIDER)["id"] == 71
    assert "is passed over" in broker.log
    consumer = KafkaConsumer("_schemas", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
    rows = []
    while len(rows) < 4:
        rows += [row for batch in consumer.poll(1000).values() for row in batch]
    consumer.close()
    assert json.loads(rows[0].key) == {"keytype": "SCHEMA", "subject": "orders", "version": 1, "magic": 1}
    assert json.loads(rows[0].value)["id"] == 1


def test_deleted_topic_is_an_empty_registry_and_a_warning(broker, registry):
    registry.register("orders", ORDER)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.delete_topics(["_schemas"])
    admin.close()
    assert registry.ask("GET", "/subjects") == []
    assert "the topic _schemas was deleted: the registry is empty" in broker.log
    assert registry.register("orders", WIDER)["id"] == 1


def test_health_and_output_say_where_it_is(tmp_path):
    words = [sys.executable, "-m", "momus", "serve", "--listen", "127.0.0.1:0", "-d", str(tmp_path / "data")]
    with subprocess.Popen([*words, "--registry", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True) as process:
        ready = process.stdout.readline().split()[2]
        url = process.stdout.readline().removeprefix("momus registry ").strip()
        health = [sys.executable, "-m", "momus", "health", "-b", ready]
        told = subprocess.run(health, capture_output=True, text=True, timeout=60, check=True).stdout
        process.terminate()
    assert told == f"ok\nregistry {url}\n"
    assert url.startswith("http://127.0.0.1:")


def test_own_and_another_registry_are_refused_together(tmp_path):
    words = [sys.executable, "-m", "momus", "serve", "-d", str(tmp_path), "--registry", "127.0.0.1:0"]
    done = subprocess.run(
        [*words, "--schema-registry", "http://127.0.0.1:1"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "--schema-registry asks another one: give one" in done.stderr
    other = {"schema.registry.url": "http://127.0.0.1:1"}
    with Broker(config=other) as broker, pytest.raises(ControlError, match="asks another registry"):
        _ = broker.registry_url


def test_page_decodes_by_the_own_registry_without_a_setting(broker, registry):
    registry.register("orders-value", ORDER)
    broker.produce("orders", b"\x00\x00\x00\x00\x01\x06", b"\x00\x00\x00\x00\x09\x06")
    rows = broker.control.ask("GET", "/_admin/topics/orders/messages?offset=0")["messages"]
    assert json.loads(rows[0]["value"]["text"]) == {"id": 3}
    assert rows[1]["value"]["note"] == "schema 9: the registry of this cluster has no schemas/ids/9"


@pytest.mark.parametrize(
    ("headers", "status", "media"),
    [
        ({}, 200, "application/vnd.schemaregistry.v1+json"),
        ({"Accept": "application/json"}, 200, "application/json"),
        ({"Accept": "*"}, 200, "application/vnd.schemaregistry.v1+json"),
        (
            {"Accept": "text/html, application/vnd.schemaregistry+json; q=0.5"},
            200,
            "application/vnd.schemaregistry+json",
        ),
        ({"Accept": "text/html"}, 406, "application/vnd.schemaregistry.v1+json"),
        ({"Host": "evil.example"}, 421, "application/vnd.schemaregistry.v1+json"),
        ({"Origin": "http://evil.example"}, 403, "application/vnd.schemaregistry.v1+json"),
    ],
)
def test_content_types_and_refusals_of_http(broker, headers, status, media):
    request = urllib.request.Request(broker.registry_url + "/subjects", headers=headers)
    try:
        reply = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as refusal:
        reply = refusal
    with reply:
        assert (reply.status, reply.headers["Content-Type"]) == (status, media)


def test_body_in_chunks_and_of_other_types(broker, registry):
    assert registry.ask("POST", "/subjects/s/versions", {"schema": '"int"'}, **{"Content-Type": "text/plain"})[0] == 415
    request = urllib.request.Request(
        registry.url + "/subjects/s/versions",
        iter([b'{"schema":', b'"\\"int\\""}']),  # an iterator is sent in chunks
        {"Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        assert json.load(reply)["id"] == 1


def test_what_another_program_writes_in_a_transaction_counts_when_it_is_committed(broker, registry):
    registry.register("orders", ORDER)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="writer")
    producer.init_transactions()

    def write(subject, number):
        producer.begin_transaction()
        key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
        value = {"subject": subject, "version": 1, "id": number, "schema": '"int"', "deleted": False}
        rows = [json.dumps(each, separators=(",", ":")).encode() for each in (key, value)]
        producer.send("_schemas", key=rows[0], value=rows[1]).get(60)

    write("aborted", 7)
    status, code, text = registry.ask("GET", "/subjects")
    assert (status, code, text) == (500, 50001, "ListSubjects operation failed while reading the Kafka store")
    broker.create_topic("t")
    for path in ("/_admin/topics/t/messages?offset=0", "/_admin/schemas", "/_admin/schemas/orders/topics"):
        with pytest.raises(ControlError, match="open transaction"):
            broker.control.ask("GET", path)
    producer.abort_transaction()
    write("committed", 8)
    producer.commit_transaction()
    producer.close()
    assert registry.ask("GET", "/subjects") == ["committed", "orders"]
    assert registry.ask("GET", "/schemas/ids/7")[:2] == (404, 40403)
