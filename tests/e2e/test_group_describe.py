"""`momus group describe`: epochs, members and offsets of groups of every type."""

from __future__ import annotations

import json
import time

import pytest
from clientwork import LIMIT_S
from momus_command import run_momus
from wire_peer import Peer

from momus import Broker
from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from protocol.messages.share_group import ShareGroupHeartbeatRequest
from protocol.messages.streams_group import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
)


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        running.create_topic("orders", partitions=2)
        run_momus("produce", "-t", "orders", "-p", "0", "-b", running.bootstrap_servers, data="one\ntwo\n")
        yield running


@pytest.fixture
def peer(broker):
    made = Peer(broker)
    yield made
    made.close()


def described(broker, group):
    done = run_momus("group", "describe", group, "--json", "-b", broker.bootstrap_servers)
    assert done.returncode == 0, done.stderr
    shown = run_momus("group", "describe", group, "-b", broker.bootstrap_servers)
    assert shown.returncode == 0, shown.stderr
    return json.loads(done.stdout)[0], shown.stdout


def places(found):
    """Member -> the partitions or tasks that it has."""
    has = {}
    for row in found["assignments"]:
        assert row["state"] == "has"
        has.setdefault(row["member"], []).append(row["partition"])
    return has


def test_consumer_group(broker, peer):
    request = ConsumerGroupHeartbeatRequest(
        group_id="new", member_id="m-1", member_epoch=0, rebalance_timeout_ms=60000, subscribed_topic_names=["orders"]
    )
    request.topic_partitions = []
    assert not peer.call(request, 1).error_code
    found, shown = described(broker, "new")
    assert (found["type"], found["state"], found["protocol"]) == ("consumer", "Stable", "uniform")
    (member,) = found["members"]
    assert (member["member"], member["epoch"]) == ("m-1", found["group_epoch"])
    assert places(found) == {"m-1": ["orders-0", "orders-1"]}
    assert (member["has"], member["target"]) == (2, 2)
    assert f"new  consumer  Stable  epoch {found['group_epoch']}" in shown
    assert "orders-0" in shown


def test_streams_group(broker, peer):
    topology = StreamsGroupHeartbeatRequestTopology(
        epoch=0, subtopologies=[StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=["orders"])]
    )
    request = StreamsGroupHeartbeatRequest(
        group_id="counts", member_id="s-1", member_epoch=0, rebalance_timeout_ms=60000, topology=topology
    )
    request.process_id, request.client_tags = "p", []
    request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
    assert not peer.call(request, 0).error_code
    found, shown = described(broker, "counts")
    assert (found["type"], found["state"]) == ("streams", "Stable")
    assert places(found) == {"s-1": ["0_0", "0_1"]}
    assert "counts  streams  Stable" in shown


def test_share_group(broker, peer):
    request = ShareGroupHeartbeatRequest(
        group_id="shared", member_id="q-1", member_epoch=0, subscribed_topic_names=["orders"]
    )
    assert not peer.call(request, 1).error_code
    end = time.monotonic() + LIMIT_S
    found, shown = described(broker, "shared")
    while len(found["offsets"]) < 2 and time.monotonic() < end:
        found, shown = described(broker, "shared")
    assert (found["type"], found["state"]) == ("share", "Stable")
    assert places(found) == {"q-1": ["orders-0", "orders-1"]}
    unknown = {"topic": "orders", "committed": -1, "metadata": "", "committed_ms": -1, "member": ""}
    assert found["offsets"] == [{**unknown, "partition": p} for p in (0, 1)]
    assert "shared  share  Stable" in shown
    assert found["dead_letters"]["queue"] == ""
    assert "dead letters" not in shown


@pytest.mark.parametrize(
    ("of_topic", "copies", "accepts", "line"),
    [
        (None, "true", None, "dead letters go to dlq.new, with the record  (no such topic)\n"),
        ("false", "false", False, "dead letters go to dlq.old, without the record  (which does not take them)\n"),
        ("true", "true", True, "dead letters go to dlq.set, with the record\n"),
    ],
    ids=["no topic", "topic of something else", "queue"],
)
def test_dead_letter_queue_of_a_share_group(broker, peer, of_topic, copies, accepts, line):
    name = line.split()[4].rstrip(",")
    if of_topic is not None:
        broker.create_topic(name, config={"errors.deadletterqueue.group.enable": of_topic})
    values = {"errors.deadletterqueue.topic.name": name, "errors.deadletterqueue.copy.record.enable": copies}
    rows = [IncrementalAlterConfigsRequestAlterableConfig(name=key, value=value) for key, value in values.items()]
    change = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=32, resource_name=name, configs=rows)
    assert not peer.call(IncrementalAlterConfigsRequest(resources=[change]), 1).responses[0].error_code
    request = ShareGroupHeartbeatRequest(
        group_id=name, member_id="q-1", member_epoch=0, subscribed_topic_names=["orders"]
    )
    assert not peer.call(request, 1).error_code
    found, shown = described(broker, name)
    why_not = {None: "no such topic", False: "which does not take them", True: ""}[accepts]
    letters = {"queue": name, "exists": of_topic is not None, "copies": copies == "true", "why_not": why_not}
    assert found["dead_letters"] == letters
    assert line in shown
