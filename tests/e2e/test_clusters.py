"""Many clusters in one process, over the control plane: made, reset and removed; nobody who waits hangs."""

from __future__ import annotations

import os
import random
import re
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from clientwork import until
from cluster_kit import CLUSTERS, Wire, create, join, topics

from momus import Broker
from momus.control import Control, ControlError
from protocol.messages.classic_group import SyncGroupRequest
from protocol.messages.cluster import MetadataRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest

AT_MS = 1_800_000_000_000


def make(broker: Broker, **body: object) -> dict[str, Any]:
    made = broker.control.ask("POST", CLUSTERS, body)
    assert isinstance(made, dict)
    return made


def test_clusters_are_listed_reached_and_removed_by_name(shared_broker, wires):
    ask = shared_broker.control.ask
    made = make(shared_broker, name="first", brokers=2, config={"num.partitions": "7"})
    assert (made["name"], made["brokers"], made["flush"], "seed" in made) == ("first", 2, "memory", False)
    unnamed = make(shared_broker)
    assert [each["name"] for each in ask("GET", CLUSTERS)] == ["default", "first", unnamed["name"]]
    first, second = made["bootstrap_servers"].split(",")
    for address in (first, second):
        answer = wires(address).call(MetadataRequest(topics=None), 12)
        assert answer.cluster_id == made["cluster_id"]
        assert [f"{node.host}:{node.port}" for node in answer.brokers] == [first, second]
    assert ask("GET", f"{CLUSTERS}/first")["connections"] == 2
    assert len(ask("GET", f"{CLUSTERS}/first/brokers")) == 2
    wire = wires(first)
    create(wire, "mine")
    assert "mine" not in topics(wires(unnamed["bootstrap_servers"]))
    ask("DELETE", f"{CLUSTERS}/first")
    assert wire.is_cut()
    with pytest.raises(ConnectionRefusedError):
        Wire(first)
    with pytest.raises(ControlError, match="no such cluster: first; there are default"):
        ask("GET", f"{CLUSTERS}/first")
    ask("DELETE", f"{CLUSTERS}/{unnamed['name']}")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"name": "default"}, "already"),
        ({"name": "../x"}, "is no name"),
        ({"name": ".x"}, "is no name"),
        ({"name": ""}, "is no name"),
        ({"brokers": 0}, "1 to 100"),
        ({"brokers": True}, "a whole number"),
        ({"flush": "never"}, "memory, os, fsync"),
        ({"config": {"num.partitions": "none"}}, "num.partitions"),
        ({"config": {"num.partitions": 4}}, '"config.num.partitions" takes a text'),
        ({"listen": "nowhere"}, "HOST:PORT"),
        ({"clock_ms": -1}, "Unix milliseconds"),
    ],
)
def test_cluster_that_cannot_be_is_refused_with_the_reason_and_leaves_nothing(shared_broker, body, why):
    before = shared_broker.control.ask("GET", CLUSTERS)
    with pytest.raises(ControlError, match=why):
        make(shared_broker, **body)
    after = shared_broker.control.ask("GET", CLUSTERS)
    assert [each["name"] for each in after] == [each["name"] for each in before]


def test_cluster_whose_port_is_taken_is_refused_and_its_name_is_free(shared_broker):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for flush in ("memory", "os"):
            with pytest.raises(ControlError, match="address"):
                make(shared_broker, name="late", listen=address, flush=flush)
    made = make(shared_broker, name="late", listen=address, flush="os")
    assert made["bootstrap_servers"] == address
    shared_broker.control.ask("DELETE", f"{CLUSTERS}/late")


def test_default_cluster_is_not_removed(shared_broker):
    with pytest.raises(ControlError, match="lives as long as the process"):
        shared_broker.control.ask("DELETE", f"{CLUSTERS}/default")


@pytest.mark.parametrize("end", ["reset", "removal"])
@pytest.mark.parametrize("flush", ["memory", "os"])
def test_requests_that_wait_are_cut_when_their_cluster_ends(shared_broker, wires, end, flush):
    made = make(shared_broker, flush=flush, config={"group.initial.rebalance.delay.ms": "0"})
    path, address = f"{CLUSTERS}/{made['name']}", made["bootstrap_servers"]
    first = wires(address)
    create(first, "t")
    waiting = []

    fetch = wires(address)
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchTopic(topic="t", partitions=[wanted])
    fetch.send(FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1000, session_epoch=-1, topics=[topic]), 11)
    waiting.append(fetch)

    leader, follower = wires(address), wires(address)
    leader_id = leader.call(join("g"), 3).member_id
    follower.send(join("g"), 3)  # waits for the leader to join again
    until(lambda: leader.call(join("g", leader_id), 3).error_code == 0, "both have joined")
    joined = follower.receive(join("g"), 3)
    sync = SyncGroupRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    follower.send(sync, 2)  # waits for the leader's assignments
    waiting.append(follower)
    early, late = wires(address), wires(address)
    assert early.call(join("h"), 3).error_code == 0
    late.send(join("h"), 3)  # waits for the first member to join again
    waiting += [early, late]

    if end == "reset":
        shared_broker.control.ask("POST", f"{path}/reset")
    else:
        shared_broker.control.ask("DELETE", path)
    assert all(wire.is_cut() for wire in [first, leader, *waiting])
    if end == "reset":
        shared_broker.control.ask("DELETE", path)


@pytest.mark.parametrize("flush", ["memory", "os", "fsync"])
def test_reset_cluster_is_empty_on_the_same_ports_with_its_settings_and_the_machines_time(shared_broker, wires, flush):
    made = make(
        shared_broker, flush=flush, brokers=2, config={"num.partitions": "5", "auto.create.topics.enable": "true"}
    )
    path, addresses = f"{CLUSTERS}/{made['name']}", made["bootstrap_servers"].split(",")
    ask = shared_broker.control.ask
    create(wires(addresses[0]), "t")
    ask("POST", f"{path}/clock", {"advance_ms": 86_400_000})
    ask("POST", f"{path}/brokers/2/stop")
    again = ask("POST", f"{path}/reset")
    assert again["bootstrap_servers"] == made["bootstrap_servers"]
    assert again["cluster_id"] != made["cluster_id"]
    assert again["now_ms"] < made["now_ms"] + 80_000_000
    for address in addresses:  # the broker that was stopped runs again
        assert [name for name in topics(wires(address)) if not name.startswith("__")] == []
    answer = wires(addresses[0]).call(MetadataRequest(topics=[_named("new")], allow_auto_topic_creation=True), 12)
    until(lambda: len(_partitions(wires(addresses[0]), "new")) == 5, "the settings are those that were given")
    assert answer.cluster_id == again["cluster_id"]
    ask("DELETE", path)


def _named(name: str) -> Any:
    from protocol.messages.cluster import MetadataRequestTopic

    return MetadataRequestTopic(name=name)


def _partitions(wire: Wire, name: str) -> list[Any]:
    return wire.call(MetadataRequest(topics=[_named(name)], allow_auto_topic_creation=False), 12).topics[0].partitions


def test_default_cluster_is_reset_alone(wires):
    with Broker() as broker:
        other = make(broker, name="other", flush="os")
        wire = wires(other["bootstrap_servers"])
        create(wire, "kept")
        create(wires(broker.bootstrap_servers), "gone")
        broker.control.ask("POST", "/_admin/reset")
        assert "gone" not in topics(wires(broker.bootstrap_servers))
        assert "kept" in topics(wire)
        broker.kill()
        broker.start()
        assert "gone" not in topics(wires(broker.bootstrap_servers))
        again = make(broker, name="other", flush="os")
        assert again["cluster_id"] == other["cluster_id"]
        assert "kept" in topics(wires(again["bootstrap_servers"]))
        assert broker.stop() == 0
        assert broker.log == ""


def test_removed_cluster_leaves_no_file(tmp_path, wires):
    with Broker(data_dir=tmp_path) as broker:
        made = make(broker, name="brief", flush="os")
        create(wires(made["bootstrap_servers"]), "t")
        assert (tmp_path / "clusters" / "brief").is_dir()
        broker.control.ask("DELETE", f"{CLUSTERS}/brief")
        until(lambda: not _discarded(tmp_path), "the files are removed")
        assert os.listdir(tmp_path / "clusters") == []
        broker.control.ask("POST", "/_admin/reset")
        until(lambda: not _discarded(tmp_path), "the files are removed")
        assert "t" not in topics(wires(make(broker, name="brief", flush="os")["bootstrap_servers"]))


def _discarded(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".discarded")]


def test_start_removes_what_a_crash_left_of_a_removal(tmp_path):
    left = tmp_path / ".discarded.0123"
    left.mkdir()
    (left / "x").write_bytes(b"x")
    with Broker(data_dir=tmp_path):
        assert not left.exists()


def test_clock_of_one_cluster_is_not_that_of_another(shared_broker):
    ask = shared_broker.control.ask
    ours, theirs = make(shared_broker), make(shared_broker, clock_ms=AT_MS)
    ask("POST", f"{CLUSTERS}/{ours['name']}/clock", {"advance_ms": 86_400_000})
    assert ask("GET", f"{CLUSTERS}/{theirs['name']}/clock") == {"now_ms": AT_MS, "stands": True}
    assert ask("GET", "/_admin/clock")["now_ms"] < ours["now_ms"] + 80_000_000
    for each in (ours, theirs):
        ask("DELETE", f"{CLUSTERS}/{each['name']}")


def test_clusters_of_one_seed_draw_the_same_ids(shared_broker, wires):
    def drawn(seed: int | None) -> tuple[object, ...]:
        made = make(shared_broker, clock_ms=AT_MS, **({} if seed is None else {"seed": seed}))
        path = f"{CLUSTERS}/{made['name']}"

        def ids() -> tuple[object, ...]:
            wire = wires(made["bootstrap_servers"])
            create(wire, "t")
            described = shared_broker.control.ask("GET", path)
            return described["cluster_id"], topics(wire)["t"], wire.call(join("g"), 5).member_id

        first = ids()
        shared_broker.control.ask("POST", f"{path}/reset")
        again = ids()
        shared_broker.control.ask("DELETE", path)
        assert (again[1:] == first[1:]) == (seed is not None)
        assert again[0] != first[0]  # clients know the two apart by it
        return first

    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)
    assert drawn(None) != drawn(None)


def test_failing_disk_of_one_cluster_is_not_that_of_another_and_ends_with_a_reset(wires):
    with Broker() as broker:
        other = make(broker, flush="os")
        broker.control.ask("POST", "/_admin/faults", {"fault": "fail_write", "trigger": "every_time"})
        create(wires(other["bootstrap_servers"]), "t")
        first = wires(broker.bootstrap_servers)
        wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        refused = first.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7)
        assert refused.topics[0].error_code != 0
        broker.control.ask("POST", "/_admin/reset")
        assert broker.control.ask("GET", "/_admin/faults") == []
        create(wires(broker.bootstrap_servers), "t")


def test_seeded_process_draws_other_ids_after_each_start_and_the_same_as_its_twin(wires):
    def drawn() -> list[object]:
        with Broker(seed=11) as broker:
            found: list[object] = []
            for number in range(3):
                wire = wires(broker.bootstrap_servers)
                create(wire, f"t{number}")
                member_id = wire.call(join("g"), 5).member_id
                found += [topics(wire)[f"t{number}"].hex(), member_id.removeprefix("client-").replace("-", "")]
                broker.kill()
                broker.start()
        return found

    first = drawn()
    assert len(set(first)) == 6
    assert drawn() == first


def test_changes_of_one_cluster_at_once_leave_nothing_behind():
    made: set[str] = set()
    wrong: list[str] = []

    def storm(control: Control, seed: int) -> None:
        order = random.Random(seed)
        for _ in range(30):
            name = order.choice("ab")
            path = f"{CLUSTERS}/{name}"
            body = {"name": name, "brokers": 2, "flush": order.choice(("memory", "os"))}
            asked = order.choice(
                (
                    ("POST", CLUSTERS, body),
                    ("POST", CLUSTERS, body),
                    ("DELETE", path, None),
                    ("POST", f"{path}/reset", None),
                    ("POST", f"{path}/brokers/1/stop", None),
                    ("POST", f"{path}/brokers/1/start", None),
                )
            )
            try:
                answer = control.ask(*asked)
            except ControlError as error:
                if not re.search("no such cluster|already|was removed|last running", str(error)):
                    wrong.append(f"{asked}: {error}")
            else:
                if "bootstrap_servers" in answer:
                    made.update(answer["bootstrap_servers"].split(","))

    with Broker() as broker:
        threads = [threading.Thread(target=storm, args=(broker.control, seed)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert wrong == []
        assert len(made) > 10
        for each in broker.control.ask("GET", CLUSTERS):
            if each["name"] != "default":
                broker.control.ask("DELETE", f"{CLUSTERS}/{each['name']}")
        for address in made:
            with pytest.raises(ConnectionRefusedError):
                Wire(address)
        assert broker.stop() == 0
        assert broker.log == ""


@pytest.mark.parametrize("limit", [{"max.connections": "0"}, {"max.connections.per.ip": "1"}])
def test_limits_of_connections_do_not_concern_the_control_plane(shared_broker, limit):
    with shared_broker.create_cluster(brokers=2, config=limit) as cluster:
        cluster.create_topic("t", 2)
        for partition in range(2):
            cluster.produce("t", "a", partition=partition)
        assert [record.value for record in cluster.consume("t")] == [b"a", b"a"]
