"""Faults for the requests of one user, and faults beside quotas: both have every request take the general path."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from core_requests import produce_request
from unit.quotas.quotas_kit import set_quota

from protocol.errors import ErrorCode


def as_user(world: World, principal: str) -> Client:
    client = Client(world)
    client.connection.principal = principal
    return client


def code_of(client: Client) -> int:
    return int(client.call(produce_request("t", 0, b"v"), 9).responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("principal", ["User:alice", "User:al*"])
def test_fault_for_a_user_leaves_others_alone(principal):
    world = World("memory")
    make_topic(Client(world))
    alice, bob = as_user(world, "User:alice"), as_user(world, "User:bob")
    fault = world.broker.faults.add(
        {"fault": "inject_error", "error": "NOT_LEADER_OR_FOLLOWER", "api": "Produce", "principal": principal}
    )
    assert (code_of(alice), code_of(bob)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
    assert fault.hits == 1
    assert fault.as_json()["principal"] == principal


@pytest.mark.parametrize("first", ["fault", "quota"])
@pytest.mark.parametrize("ends_first", ["fault", "quota"])
def test_shortcuts_are_back_when_neither_faults_nor_quotas_are_left(first, ends_first):
    world = World("memory")
    client = Client(world)
    clients = world.broker.clients
    make_topic(client)
    code_of(client)
    shortcuts = clients.shortcuts
    assert shortcuts, "the first request is kept"
    rules = {"fault": "inject_error", "error": "NOT_LEADER_OR_FOLLOWER", "name": "f", "client_id": "another"}
    begin = {
        "fault": lambda: world.broker.faults.add(rules),
        "quota": lambda: set_quota(client, "producer_byte_rate", 1e9, client_id=None),
    }
    end = {
        "fault": lambda: world.broker.faults.remove("f"),
        "quota": lambda: set_quota(client, "producer_byte_rate", None, client_id=None),
    }
    for each in (first, *(begin.keys() - {first})):
        begin[each]()
        assert not clients.shortcuts
    end[ends_first]()
    assert not clients.shortcuts, "the other one still needs every request"
    for each in end.keys() - {ends_first}:
        end[each]()
    assert clients.shortcuts is shortcuts
