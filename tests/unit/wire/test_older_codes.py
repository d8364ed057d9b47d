"""A row of the table of codes for old versions acts on a handler, an injected fault and the counters alike."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request

from broker.wire.errors import OLDER
from protocol.api import ApiKey
from protocol.errors import ErrorCode


@pytest.fixture
def client() -> Client:
    client = Client(World("memory"))
    make_topic(client, partitions=2)
    return client


def codes_of(answer: Any) -> set[int]:
    return {partition.error_code for topic in answer.topics for partition in topic.partitions}


def counted(client: Client) -> dict[tuple[int, int], int]:
    errors = client.world.broker.turn.metrics.errors
    found = dict(errors)
    errors.clear()
    return found


@pytest.mark.parametrize("answered_by", ["handler", "fault"])
@pytest.mark.parametrize(("version", "is_older"), [(7, True), (8, True), (9, False), (10, False)])
def test_row_acts_on_handler_fault_and_counter_alike(
    client: Client, monkeypatch: pytest.MonkeyPatch, answered_by: str, version: int, is_older: bool
) -> None:
    code, older = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    monkeypatch.setitem(OLDER, ApiKey.OFFSET_COMMIT, {code: (9, older)})
    request = commit_request("g", {0: 1, 1: 1})
    request.topics[0].topic_id = client.world.broker.metadata.topics["t"].topic_id
    if answered_by == "fault":
        client.world.broker.faults.add({"fault": "inject_error", "error": code.name, "api": "OffsetCommit"})
    else:
        client.call(commit_request("g", {0: 1}), 8)  # a simple group, which knows no member
        request.generation_id_or_member_epoch, request.member_id = 3, "m"
    counted(client)
    expected = older if is_older else code
    assert codes_of(client.call(request, version)) == {expected}
    assert counted(client) == {(ApiKey.OFFSET_COMMIT, expected): 2}


@pytest.mark.parametrize("api_key", OLDER)
def test_codes_for_old_versions_are_themselves_known_to_these(api_key: int) -> None:
    rows = OLDER[api_key]
    assert not {older for _, older in rows.values()} & set(rows)
