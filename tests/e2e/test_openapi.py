"""/openapi.json: each operation with the example that it shows, in a cluster where what the path names is there."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from described import fits

from momus import Broker
from momus.control import ControlError

PREFIX = "/_admin/clusters/{cluster}"
APART = {  # what they ask for is made by the tests that are named
    "hang_up": "it ends the process for its clients: test_end_counts.py",
    "step": "with `momus open`: packaging/test_open.py",
    "fetch_step": "with `momus open`: packaging/test_open.py",
    "tell_step": "it would open a run: packaging/test_open.py",
    "events": "it does not end: test_events.py",
    "search_messages": "it is a stream: page/test_page_search.py",
    "remove_created": "of a proxy: proxy/test_upstream_run.py",
}
SECURE = {"add_user", "remove_user", "change_certificates", "add_acls", "list_acls", "remove_acls", "client_settings"}
Operation = tuple[str, str, dict[str, Any]]


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def described(process: Broker) -> dict[str, Any]:
    found: Any = process.control.ask("GET", "/openapi.json")
    return found


def operations(described: dict[str, Any]) -> Iterator[Operation]:
    """Those of the process, and those of a cluster by its name."""
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            if not operation["operationId"].endswith("_of_default"):
                yield method.upper(), path, operation


def words_of(operation: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["example"] for each in operation.get("parameters", ()) if each["in"] == "path"}


def body_of(operation: dict[str, Any]) -> dict[str, Any]:
    media: dict[str, Any] = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return media


def member(ends: ExitStack, address: str) -> None:
    """A static member of the group in the examples, which polls until the end."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "billing", "group.instance.id": "consumer-1"}
        | {"auto.offset.reset": "earliest", "heartbeat.interval.ms": 50}
    )
    joined, is_over = threading.Event(), threading.Event()
    consumer.subscribe(["orders"], on_assign=lambda *_: joined.set())

    def poll() -> None:
        while not is_over.is_set():
            consumer.poll(0.02)
        consumer.close()

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    ends.callback(thread.join)
    ends.callback(is_over.set)
    assert joined.wait(60)


def committer(address: str) -> None:
    """A group with an offset and no member."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "billing"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()


def register(url: str) -> None:
    """A schema of the subject in the examples."""
    body, headers = json.dumps({"schema": '"int"'}).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/subjects/orders-value/versions", body, headers)
    urllib.request.urlopen(request, timeout=60).close()


def arranged(process: Broker, name: str, ends: ExitStack) -> Any:
    """A cluster in which all is there that the examples name."""
    words: dict[str, Any] = {"security": "sasl_ssl", "users": {"alice": "secret"}} if name in SECURE else {}
    if "acls" in name:
        words["config"] = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    cluster = ends.enter_context(process.create_cluster(brokers=3, journal_mb=1, **words))
    if not words and name != "create_topic":
        cluster.produce("orders", "one coffee")
    cluster.snapshot("before" if name == "take_snapshot" else "full")
    if name == "wait_for_fault":
        cluster.faults.add(fault="delay_on", api="Metadata", ms=1, name="gate")
        Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "billing"}).list_topics(timeout=60)
    else:
        cluster.faults.add(fault="hold", api="EndTxn", name="gate")
    if name in ("rebalance", "expel_member"):
        member(ends, cluster.bootstrap_servers)
    if name in ("delete_group", "wait_for_lag"):
        committer(cluster.bootstrap_servers)
    if "recording" in name:
        cluster.record()
    if name in ("list_subjects", "show_changes", "show_subject", "show_use"):
        register(cluster.registry_url)
    cluster.faults.load([{"fault": "hold", "api": "EndTxn", "name": "gate"}] if "recording" in name else [])
    return cluster


def test_each_operation_has_a_name_of_its_own_and_a_tag(described):
    names = [each["operationId"] for methods in described["paths"].values() for each in methods.values()]
    assert len(names) == len(set(names)) > 100
    assert all(each["tags"] != [""] for methods in described["paths"].values() for each in methods.values())


def test_routes_of_the_default_cluster_are_described_as_those_of_any(described):
    paths = described["paths"]
    for path, methods in paths.items():
        if path.startswith(PREFIX + "/"):
            for method, operation in methods.items():
                twin = paths[path.replace("/clusters/{cluster}", "")][method]
                assert twin["summary"] == operation["summary"]
                assert body_of(twin) == body_of(operation)
                assert twin["operationId"] == f"{operation['operationId']}_of_default"


def test_index_has_the_paths_that_are_described(process, described):
    index: Any = process.control.ask("GET", "/")
    assert {path: {m.lower() for m in methods} for path, methods in index.items()} == {
        path: methods.keys() for path, methods in described["paths"].items()
    }


def test_each_body_has_an_example_that_fits_its_schema(described):
    for method, path, operation in operations(described):
        media = body_of(operation)
        if media:
            assert fits(media["example"], media["schema"], described), (method, path)


def test_each_operation_accepts_its_example_and_answers_as_described(process, described):
    asked = 0
    for method, path, operation in operations(described):
        name = operation["operationId"]
        if name in APART:
            continue
        with ExitStack() as ends:
            cluster = arranged(process, name, ends) if path.startswith(PREFIX) else None
            words = words_of(operation)
            if cluster is not None:
                words["cluster"] = cluster.name
            media = operation["responses"]["200"]["content"]
            try:
                if "application/json" not in media:
                    assert process.control.read(path.format(**words)), path
                else:
                    answer = process.control.ask(method, path.format(**words), body_of(operation).get("example"))
                    schema = media["application/json"]["schema"]
                    assert fits(answer, schema, described), (method, path, answer)
            except ControlError as error:
                pytest.fail(f"{method} {path} refuses its example: {error}")
            finally:
                if name == "remove_cluster":
                    cluster.is_open = False
            if name in ("create_cluster", "fork_cluster"):
                process.control.ask("DELETE", f"/_admin/clusters/{answer['name']}")
            asked += 1
    assert asked > 70


Refuse = Callable[[Any], tuple[str, Any]]
REFUSED: dict[tuple[str, int], Refuse] = {
    ("create_topic", 409): lambda c: ("/topics", {"name": "orders"}),
    ("create_topics", 409): lambda c: ("/create-topics", {"topics": {"orders": 1}}),
    ("produce", 404): lambda c: ("/topics/orders/records", {"records": [{"value": "x", "partition": 9}]}),
    ("produce", 409): lambda c: ("/topics/orders:/records", {"records": [{"value": "x"}]}),
    ("consume", 404): lambda c: ("/topics/nothing/consume", {}),
    ("consume", 408): lambda c: ("/topics/orders/consume", {"least": 1}),
    ("wait_for_group", 408): lambda c: ("/groups/none/wait", {"state": "stable"}),
    ("wait_for_lag", 408): lambda c: ("/groups/none/wait-for-lag", {"lag": 0}),
    ("verify_requests", 409): lambda c: ("/journal/verify", {"filters": {"api": "EndTxn"}}),
    ("stop_broker", 409): lambda c: (c.stop_broker(1), c.stop_broker(2), ("/brokers/3/stop", None))[-1],
    ("start_broker", 409): lambda c: (c.pause_broker(2), ("/brokers/2/start", None))[-1],
    ("lag_follower", 409): lambda c: (c.stop_broker(2), ("/brokers/2/lag", None))[-1],
    ("release_follower", 409): lambda c: (c.pause_broker(2), ("/brokers/2/release", None))[-1],
    ("pause_broker", 409): lambda c: (c.stop_broker(2), ("/brokers/2/pause", None))[-1],
    ("delete_group", 409): lambda c: ("/groups/nobody", None),
    ("rebalance", 404): lambda c: ("/groups/nobody/rebalance", None),
    ("expel_member", 404): lambda c: ("/groups/nobody/expel", {"member": "m"}),
    ("fetch_recording", 409): lambda c: ("/recording", None),
    ("client_settings", 404): lambda c: ("/security?client=nobody", None),
    ("add_user", 409): lambda c: ("/users", {"name": "carol", "password": "p"}),
    ("remove_user", 409): lambda c: ("/users/alice", None),
    ("add_acls", 409): lambda c: (
        "/acls",
        {"acls": [{"principal": "User:a", "operation": "read", "resource": "topic", "name": "t"}]},
    ),
    ("change_certificates", 409): lambda c: ("/certificates", {"action": "rotate"}),
    ("take_snapshot", 409): lambda c: (c.snapshot("one"), ("/snapshots", {"name": "one"}))[-1],
    ("restore", 404): lambda c: ("/restore", {"snapshot": "nothing"}),
    ("fork_cluster", 404): lambda c: ("/fork", {"snapshot": "nothing"}),
    ("fork_cluster", 409): lambda c: ("/fork", {"name": c.name}),
}


@pytest.mark.parametrize(("name", "status"), REFUSED)
def test_refusal_has_a_status_that_is_described(process, described, name, status):
    ((method, operation),) = [(m, o) for m, _, o in operations(described) if o["operationId"] == name]
    assert str(status) in operation["responses"]
    with process.create_cluster(brokers=3) as cluster:
        cluster.create_topic("orders")
        path, body = REFUSED[name, status](cluster)
        assert _status(process, method, cluster.control.prefix + path, body) == status


def test_what_each_path_and_body_imply_is_refused_as_described(process, described):
    for method, path, operation in operations(described):
        words = words_of(operation)
        if words and path.startswith(PREFIX):
            nowhere = path.format(**{**words, "cluster": "nowhere"})
            assert _status(process, method, nowhere, body_of(operation).get("example")) == 404, path
            assert "404" in operation["responses"]
        if body_of(operation).get("schema", {}).get("additionalProperties") is False:
            given = {**body_of(operation)["example"], "surprise": 1}
            assert _status(process, method, path.format(**words), given) == 400, path
            assert "400" in operation["responses"]


def _status(process: Broker, method: str, path: str, body: Any) -> int:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{process.control.address}{path}", data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code if "error" in json.loads(error.read()) else 0


def test_fault_is_described_with_the_fields_and_filters_of_its_kind(described):
    schema = {"$ref": "#/components/schemas/Fault"}
    right = {"fault": "delay_on", "ms": 5, "api": ["Produce"], "trigger": {"times": 2}, "group": "g"}
    assert fits(right, schema, described)
    for wrong in (
        {"ms": None},
        {"fault": "sing"},
        {"group": 5},
        {"bytes_per_second": 1},
        {"trigger": "twice"},
        {"trigger": {"times": "2"}},
        {"when": "middle"},
    ):
        assert not fits({**right, **wrong}, schema, described), wrong
    assert not fits({"fault": "delay_on"}, schema, described)
