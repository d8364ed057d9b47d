"""Every fixture and every verb of the kit, from an installed momus: the scene "the kit" of tests/installed/table.py.

The last check walks momus/aio.pyi, which names all verbs, and fails for one that no check before it has called.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

import momus
from momus import aio, diff, faults, handle, optimistic
from momus.registry import registry_settings

LOAD = {"topics": [{"name": "loaded", "records": [{"value": "x"}]}]}
AT_HOME = {"AsyncHandle": ("momus.cluster", "Cluster"), "AsyncCluster": ("momus.cluster", "Cluster")}
AT_HOME |= {"AsyncBroker": ("momus.kit.process", "Broker"), "AsyncSnapshot": ("momus.cluster", "Snapshot")}
AT_HOME |= {f"Async{name}": ("momus.faults", name) for name in ("Fault", "Faults")}
AT_HOME |= {f"Async{name}": ("momus.security", name) for name in ("Users", "Acls", "Certificates")}
AT_HOME |= {"AsyncClock": ("momus.control", "Clock"), "AsyncJournal": ("momus.journal", "Journal")}


@pytest.mark.parametrize("name", ["kafka_broker", "kafka_broker_class", "kafka_broker_module", "kafka_broker_session"])
def test_fixture_is_a_cluster(name: str, request: pytest.FixtureRequest) -> None:
    broker = request.getfixturevalue(name)
    broker.produce("t", "one")
    assert [record.value for record in broker.consume("t")] == [b"one"]


def test_fork_has_the_topics_of_the_template(kafka_broker_fork: momus.Cluster) -> None:
    assert kafka_broker_fork.consume("kept") == []


def test_fixtures_of_the_session_are_there(kafka_broker_config: object, kafka_listen_address: tuple[str, int]) -> None:
    assert not kafka_broker_config
    assert kafka_listen_address[0] == "127.0.0.1"


def test_process_broker_lives_and_dies(kafka_process_broker: momus.Broker) -> None:
    broker = kafka_process_broker
    broker.produce("t", "one")
    broker.kill()
    broker.start()
    assert len(broker.consume("t")) == 1
    assert broker.stop() == 0
    broker.start()
    broker.restart()
    assert broker.running
    assert broker.pid > 1
    assert broker.log is not None
    assert broker.name("orders") == "orders"
    with broker.create_cluster(name="other") as other:
        assert other.bootstrap_servers != broker.bootstrap_servers
        assert other.close_verified() == []


def test_records_topics_and_what_clients_need(make_kafka_broker: momus.MakeKafkaBroker) -> None:
    broker = make_kafka_broker(brokers=3, seed=7)
    broker.create_topic("orders", partitions=2, replicas=3, config={"retention.ms": -1})
    broker.create_topics({"a": 1, "b": 2})
    assert broker.produce("orders", {"item": 1}, key="k", headers={"h": "v"})
    assert broker.consume("orders", 1, key="k", isolation="committed", timeout=60)
    assert broker.load(LOAD)["topics"] == 1
    assert broker.get_bootstrap_server() in broker.bootstrap_servers
    for client in ("aiokafka", "kafka-python", "confluent", "java", "spark"):
        assert broker.client_config(client)
    assert broker.ui_url.startswith("http")
    broker.record()
    assert broker.recording()
    for act in (broker.stop_broker, broker.start_broker, broker.lag_follower, broker.release_follower):
        act(2)
    broker.pause_broker(2)
    broker.resume_broker(2)
    broker.close()


def test_time_snapshots_and_differences(kafka_broker: momus.Cluster) -> None:
    clock = kafka_broker.clock
    clock.freeze()
    assert clock.stands()
    before = clock.now()
    clock.advance(days=8)
    assert clock.now() - before == timedelta(days=8)
    clock.set(before + timedelta(days=9))
    clock.resume()
    kept = kafka_broker.snapshot("kept")
    kafka_broker.produce("t", "one")
    assert diff(kept, kafka_broker)
    with kafka_broker.fork("kept") as fork, kept.fork() as other:
        assert not diff(fork, other)
    kept.restore()
    kafka_broker.restore("kept")
    assert len(kafka_broker.snapshots()) == 1
    kept.remove()
    kafka_broker.snapshot("second")
    kafka_broker.remove_snapshot("second")
    kafka_broker.reset()
    assert kafka_broker.log is not None


def test_groups(kafka_broker: momus.Cluster) -> None:
    kafka_broker.produce("orders", "one", "two")
    settings = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    reader = KafkaConsumer("orders", **settings, **kafka_broker.client_config("kafka-python"))
    assert next(reader).value == b"one"
    assert next(reader).value == b"two"
    reader.commit()
    (member,) = kafka_broker.wait_for_group("g", "stable", members=1, timeout=60)
    kafka_broker.wait_for_committed("g", {("orders", 0): 2}, timeout=60)
    kafka_broker.wait_for_lag("g", 0, topic="orders", timeout=60)
    assert kafka_broker.committed("g") == {("orders", 0): 2}
    assert kafka_broker.rebalance("g") == [member]
    kafka_broker.expel_member("g", member)
    reader.close(autocommit=False)
    kafka_broker.wait_for_group("g", "empty", timeout=60)
    kafka_broker.delete_group("g")
    assert optimistic.commit_if is not None


def test_faults_of_each_kind(kafka_broker: momus.Cluster) -> None:
    told = kafka_broker.faults
    refused = told.inject_error("Produce", "NOT_LEADER_OR_FOLLOWER", trigger=faults.once)
    held = told.hold("Produce", trigger=faults.on_call(2))
    client = KafkaProducer(**kafka_broker.client_config("kafka-python"))
    sending = threading.Thread(target=lambda: client.send("t", b"x").get(60))
    sending.start()
    held.wait_until_held(timeout=60)
    assert held.held == 1
    assert held.release(1) == 1
    sending.join()
    refused.wait_until_hit(timeout=60)
    assert (refused.hits, refused.state()["hits"]) == (1, 1)
    assert refused.calls >= 1
    client.close()
    held.remove()
    for set_one in (
        lambda: told.delay_on("Fetch", 1, trigger=faults.times(2)),
        lambda: told.make_event("rebalance", "OffsetCommit", "after"),
        lambda: told.disconnect_on("Fetch", trigger=faults.with_probability(0.5, seed=1)),
        lambda: told.blackhole_client("nobody"),
        lambda: told.throttle(100, api="Fetch"),
        lambda: told.corrupt_reply("Fetch"),
        lambda: told.deliver_twice("Produce"),
        lambda: told.slow_disk(1),
        lambda: told.full_disk(),
        lambda: told.fail_write(),
        lambda: told.fail_fsync(),
        lambda: told.fail_dead_letter("NOT_LEADER_OR_FOLLOWER"),
        lambda: told.registry("error"),
        lambda: told.add(fault="hold", api="Fetch"),
    ):
        set_one()
    told.load([{"fault": "hold", "api": "Heartbeat"}])
    assert len(told.list()) == 16
    assert list(told.unmet())
    told.clear()
    kafka_broker.verify()


def test_journal(kafka_broker: momus.Cluster) -> None:
    journal = kafka_broker.journal
    journal.keep(8)
    journal.expect(api="Produce", topic="t", times=1)
    client = KafkaProducer(**kafka_broker.client_config("kafka-python"))
    client.send("t", b"x").get(60)
    client.close()
    journal.verify(api="Produce", topic="t", times=1)
    assert [each["api"] for each in journal.entries(api="Produce")] == ["Produce"]
    assert list(journal.unmet()) == []
    assert "Produce" in journal.last()
    journal.clear()
    assert handle.VERIFY


def test_security_and_registry(make_kafka_broker: momus.MakeKafkaBroker) -> None:
    broker = make_kafka_broker(security="sasl_ssl", users={"alice": "pencil"}, registry=True)
    broker.users.add("carol", "ink")
    assert set(broker.users.list()) >= {"alice", "carol"}
    assert broker.users.passwords()["carol"] == "ink"
    broker.users.remove("carol")
    broker.acls.allow("alice", "read", topic="t")
    broker.acls.deny("alice", "write", topic="t")
    assert len(broker.acls.list()) == 2
    assert broker.acls.remove("alice") == 2
    broker.certificates.issue()
    broker.certificates.expire()
    broker.certificates.rotate()
    assert broker.registry_url.startswith("http")
    assert registry_settings is not None
    broker.close()


def test_twins_are_awaited() -> None:
    async def run() -> None:
        with momus.Broker() as broker:
            await broker.aio.produce("t", "one")
            assert len(await broker.aio.consume("t")) == 1
            await broker.aio.clock.advance(days=1)
            async with await broker.aio.fork() as other:
                assert len(await other.consume("t")) == 1

    asyncio.run(run())


def test_each_verb_of_the_kit_was_called(called: set[object]) -> None:
    stub = ast.parse(Path(str(aio.__file__)).with_suffix(".pyi").read_text())
    missing, count = [], 0
    for node in stub.body:
        if isinstance(node, ast.ClassDef) and node.name in AT_HOME:
            module, name = AT_HOME[node.name]
            kind = getattr(importlib.import_module(module), name)
            for verb in (each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)):
                found = inspect.getattr_static(kind, verb)
                function = inspect.unwrap(getattr(found, "fget", None) or getattr(found, "func", None) or found)
                count += 1
                if getattr(function, "__code__", None) not in called:
                    missing.append(f"{name}.{verb}")
    assert count > 80
    assert missing == []
