"""In which order a load is done: what a client may lean on is there before what leads it there."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from broker.load.sources import read_value
from broker.shell.load import filling
from broker.shell.load.batches import RecordBatch
from broker.shell.load.filling import Filling

LOAD = {
    "topics": [{"name": "a", "partitions": 2}, {"name": "b", "partitions": 1}],
    "groups": [{"name": "g", "offsets": [{"topic": "b", "offset": 3}]}],
    "users": [{"name": "alice", "password": "p"}],
    "faults": [{"fault": "inject_error", "api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER"}],
    "quotas": [{"user": "alice", "producer_byte_rate": 1}],
    "acls": [{"principal": "User:alice", "operation": "read", "resource": "topic", "name": "a"}],
}


@pytest.fixture
def done(monkeypatch):
    """What is done, in its order; nothing of it is."""
    done = []
    topics = {}

    def noting(what, answer=None):
        async def note(*given):
            done.append(what)
            return answer

        return note

    class Asking:
        def __init__(self, cluster):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        async def ask(self, question):
            done.append(question)

    async def create(cluster, call):
        topics[call.body["name"]] = SimpleNamespace(partitions=range(call.body["partitions"]))
        done.append(f"create {call.body['name']}")

    monkeypatch.setattr(filling, "Asking", Asking)
    monkeypatch.setattr(filling, "produce", lambda topic, partition, data: f"produce {topic}-{partition}")
    monkeypatch.setattr(filling.calls, "create_topic", create)
    monkeypatch.setattr(filling, "ask", noting("commit", []))
    monkeypatch.setattr(filling, "add_user", noting("user", 1))
    monkeypatch.setattr(filling, "add_acls", noting("acls"))
    monkeypatch.setattr(filling, "alter_quotas", noting("quotas", []))
    faults = SimpleNamespace(add=lambda body: done.append("fault"))
    broker = SimpleNamespace(metadata=SimpleNamespace(topics=topics, node_ids=[1]), faults=faults)
    load = Filling(SimpleNamespace(broker=broker), read_value("load", LOAD))
    load._batches = {(name, partition): [RecordBatch(5, b"")] for name, partition in (("a", 0), ("a", 1), ("b", 0))}
    asyncio.run(load._do())
    assert not load._batches
    return done


def test_records_are_there_before_the_offsets_that_are_committed(done):
    assert done.index("commit") > max(done.index(f"produce {each}") for each in ("a-0", "a-1", "b-0"))


def test_topic_is_made_before_its_records_and_who_may_use_it_before_both(done):
    for topic in "ab":
        assert done.index(f"create {topic}") < done.index(f"produce {topic}-0")
    assert max(done.index(each) for each in ("user", "acls", "quotas")) < done.index("create a")


def test_faults_are_set_last_so_that_none_of_them_meets_the_load(done):
    assert done[-1] == "fault"
