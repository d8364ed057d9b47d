"""Every GET route of a filled broker, of its fork and of a proxy before it answers as /openapi.json describes it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from described import fits, unfilled
from wire_peer import Peer

from momus import Broker
from momus.control import ControlError, NotOnUpstreamError
from protocol.messages.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)

LIMIT_S = 60
BEGIN = "/_admin/clusters/{cluster}"
CONFIG = {
    "group.initial.rebalance.delay.ms": 0,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ENDLESS = {"/events": "test_events.py", "/topics/{topic}/search": "page/test_page_search.py"}
WORDS = {
    "topic": "orders",
    "group": "billing",
    "transactional_id": "copier",
    "snapshot": "full",
    "subject": "orders-value",
    "name": "gate",
    "file": "index.html",
}
# What a cluster has not, and says so; a share group commits nothing.
REFUSED = {
    "broker": {"/recording", "/groups/sharers/offsets"},
    "fork": {
        "/recording", "/groups/sharers/offsets", "/faults/gate", "/faults/gate/held", "/schemas",
        "/schemas/orders-value",
        "/schemas/orders-value/changes", "/schemas/orders-value/topics",
    },
    "proxy": {"/recording", "/groups/sharers/offsets"},
}  # fmt: skip  # several to a line
# The lists, and the fields that may be left out, which no answer of such a cluster fills; but for NOTES, which
# depend on what is among the newest requests, or on a registry.
NOTES = (".fault", ".why", ".topic_names", ".errors", ".note", ".schema")
OF_ALL = {
    ".run", ".seed", ".warnings", "/overview.run", "/overview.seed", "/overview.warnings",
    "/faults/kinds[].filters[].choices", "/faults/kinds[].filters[].default",
    "/transactions/{transactional_id}.groups",
}  # fmt: skip  # several to a line
NO_SNAPSHOTS = {"/overview.snapshots", "/snapshots"}
EMPTY = {
    "broker": OF_ALL
    | {"/schemas/{subject}.versions[].references", "/schemas/{subject}/changes.backward", "/users.users"}
    | {"/made-events", "/verify.unmet"},
    "fork": OF_ALL
    | NO_SNAPSHOTS
    | {f"/journal{each}.entries" for each in ("", "/tail", "/entries/{number}")}
    | {
        "/faults",
        "/journal/last.lines",
        "/journal/requests.requests",
        "/made-events",
        "/registry.url",
        "/timeline.seconds",
        "/users.users",
        "/verify.unmet",
    },
    "proxy": OF_ALL
    | NO_SNAPSHOTS
    | {
        "/faults/{name}/held.entries",
        "/groups/{group}/details.dead_letters",
        "/groups/{group}/details.offsets[].archiving",
        "/overview.features",
    },
}
# where there are several answers of one shape: words of the path -> what is asked for as well
MORE = {
    "group": ["readers", "sharers", "nobody"],
    "transactional_id": ["left-open", "nobody"],
    "topic": ["__consumer_offsets", "__transaction_state"],
}


class Server(NamedTuple):
    """Whom to ask, and under which name it has the cluster."""

    control: Any
    cluster: str


def transaction(address: str, name: str, end: str) -> Producer:
    producer = Producer({"bootstrap.servers": address, "transactional.id": name})
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce("orders", end, key="k", headers={"h": "1"}, partition=partition)
    producer.flush(LIMIT_S)
    if end:
        getattr(producer, f"{end}_transaction")(LIMIT_S)
    return producer


def commits_in(address: str, producer: Producer) -> None:
    """Offsets of a group wait in its open transaction."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "in-transaction"})
    offsets = [TopicPartition("orders", 0, 1)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), LIMIT_S)
    consumer.close()


def with_schema(address: str) -> None:
    """Records whose keys and values name a schema that is there, and one that is not."""
    producer = Producer({"bootstrap.servers": address})
    for number, data in ((1, b"\2"), (99, b"?")):
        framed = b"\0" + number.to_bytes(4, "big") + data
        for partition in (0, 1):
            producer.produce("orders", framed, key=framed, partition=partition)
    producer.flush(LIMIT_S)


def member(address: str, group: str, protocol: str) -> Consumer:
    """A member that has read, and committed what it has read."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    assert consumer.poll(LIMIT_S) is not None
    consumer.commit(asynchronous=False)
    return consumer


def share_group(peer: Peer) -> None:
    """A share group with start offsets and no member."""
    places = [AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1)]
    topics = [AlterShareGroupOffsetsRequestTopic(topic_name="orders", partitions=places)]
    answer = peer.call(AlterShareGroupOffsetsRequest(group_id="sharers", topics=topics), 0)
    assert answer.error_code == 0, answer.error_message


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Server]]:
    with (
        Broker(config=CONFIG, journal_mb=8) as broker,
        Broker(upstream=broker.bootstrap_servers, journal_mb=8) as proxy,
    ):
        broker.create_topic("orders", partitions=2)
        url = f"{broker.registry_url}/subjects/orders-value/versions"
        for schema in ('"int"', '"long"'):
            body, head = json.dumps({"schema": schema}).encode(), {"Content-Type": "application/json"}
            urllib.request.urlopen(urllib.request.Request(url, body, head), timeout=LIMIT_S).close()
        for each in (broker, proxy):
            each.faults.add(fault="hold", api="DeleteTopics", name="gate")
            each.faults.inject_error("EndTxn", "COORDINATOR_LOAD_IN_PROGRESS", trigger="once")
            for end in ("commit", "abort"):
                transaction(each.bootstrap_servers, "copier", end)
        opened = transaction(broker.bootstrap_servers, "left-open", "")
        commits_in(broker.bootstrap_servers, opened)
        with_schema(broker.bootstrap_servers)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics(["held"])  # "gate" keeps it
        consumers = [
            member(broker.bootstrap_servers, "billing", "classic"),
            member(proxy.bootstrap_servers, "readers", "consumer"),
        ]
        late = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing"})
        with pytest.raises(Exception, match="UNKNOWN_MEMBER_ID"):  # refused, and in the history of the group
            late.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
        acl = {"principal": "User:alice", "operation": "read", "resource": "topic", "name": "orders"}
        broker.control.ask("POST", "/_admin/acls", {"acls": [acl]})
        quota = {"entity": {"client_id": "c"}, "rates": {"producer_byte_rate": 1_000_000}}
        broker.control.ask("POST", "/_admin/quotas", quota)
        with Peer(broker) as peer:
            share_group(peer)
        broker.snapshot("full")
        fork = broker.fork()
        yield {
            "broker": Server(broker.control, "default"),
            "fork": Server(broker.control, fork.name),
            "proxy": Server(proxy.control, "default"),
        }
        for each in (*consumers, late):
            each.close()
        opened.abort_transaction(LIMIT_S)


def paths_of(server: Server, described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each path to ask for, its route, and the schema of its answer."""
    numbers = [str(each["number"]) for each in server.control.ask("GET", "/_admin/journal")["entries"][-40:]]
    for path, methods in described["paths"].items():
        content = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if "application/json" not in content or path.removeprefix(BEGIN) in ENDLESS:
            continue
        schema = content["application/json"]["schema"]
        words = {
            **WORDS,
            "cluster": server.cluster,
            "number": numbers[0] if numbers else "1",
            "user": "alice",
            "id": "1",
        }
        yield path.format(**words), path, schema
        for word, others in {**MORE, "number": numbers[1:]}.items():
            if f"{{{word}}}" in path:
                for other in others:
                    yield path.format(**{**words, word: quote(other, safe="")}), path, schema


@pytest.mark.parametrize("kind", ["broker", "fork", "proxy"])
def test_every_answer_of_a_filled_cluster_is_as_described(servers, kind):
    server = servers[kind]
    described = server.control.ask("GET", "/openapi.json")
    begin, filled = f"/_admin/clusters/{server.cluster}", dict[str, list[Any]]()
    answered, wrong, refused = 0, [], {}
    for path, route, schema in paths_of(server, described):
        try:
            answer = server.control.ask("GET", path)
        except NotOnUpstreamError:
            assert kind == "proxy"
            continue
        except ControlError as error:
            refused[path.removeprefix(begin).removeprefix("/_admin")] = str(error)
            continue
        answered += 1
        filled.setdefault(route, []).append(answer)
        if not fits(answer, schema, described):
            wrong.append((path, str(answer)[:1500]))
    assert wrong == []
    assert answered > 60
    assert refused.keys() == REFUSED[kind], refused
    schemas = {route: schema for _, route, schema in paths_of(server, described)}
    empty = {
        f"{route.removeprefix(BEGIN)}{where}"
        for route, answers in filled.items()
        if route.startswith(BEGIN) or not route.startswith("/_admin/")
        for where in unfilled(answers, schemas[route], described)
        if not where.endswith(NOTES)
    }
    assert empty == EMPTY[kind]
