"""DescribeTopicPartitions of a client that may describe some topics: its pages hold, name and count these alone."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import make_topic
from unit.authorization.acl_kit import Clients, acl

from broker.cluster.acls import DESCRIBE
from protocol.errors import ErrorCode
from protocol.messages.cluster import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsRequestTopicRequest,
)

SHOWN = {"b": 2, "d": 1}  # and their partitions


@pytest.fixture
def clients() -> Clients:
    made = Clients()
    for name in "abcde":
        make_topic(made.admin, name, SHOWN.get(name, 3))
    return made


def page(clients: Clients, *names: str, limit: int = 1, cursor: Any = None) -> Any:
    """One page: topics with their errors and partitions, and the next cursor."""
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequestTopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor and DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    answer = clients.alice.call(request)
    after = answer.next_cursor
    rows = [(each.name, each.error_code, [one.partition_index for one in each.partitions]) for each in answer.topics]
    return rows, after and (after.topic_name, after.partition_index)


def test_pages_of_all_topics_go_from_one_visible_topic_to_the_next(clients):
    clients.make(*(acl(DESCRIBE, name) for name in SHOWN))
    assert page(clients) == ([("b", 0, [0])], ("b", 1))
    assert page(clients, cursor=("b", 1)) == ([("b", 0, [1])], ("d", 0))
    assert page(clients, cursor=("d", 0)) == ([("d", 0, [0])], None)


def test_cursor_in_a_hidden_topic_tells_nothing_of_it(clients):
    clients.make(acl(DESCRIBE, "d"))
    assert page(clients, cursor=("a", 2)) == page(clients, cursor=("b", 1)) == ([("d", 0, [0])], None)
    assert page(clients, cursor=("c", 2)) == ([("d", 0, [0])], None)


def test_client_without_rights_gets_an_empty_page(clients):
    assert page(clients) == ([], None)


def test_named_topics_that_are_hidden_are_refused_and_not_counted(clients):
    clients.make(acl(DESCRIBE, "b"))
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert page(clients, "a", "none") == ([("a", denied, []), ("none", denied, [])], None)
    assert page(clients, "a", "b", "c") == ([("b", 0, [0]), ("a", denied, []), ("c", denied, [])], ("b", 1))
    assert page(clients, "a", "b", "c", cursor=("c", 0)) == ([("c", denied, [])], None)
