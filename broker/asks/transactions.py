"""Asks about transactional ids: listed and described, as their coordinators tell them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from broker.asks.ask import Ask, Node, Question, To, check
from broker.asks.topics import metadata
from protocol.errors import ErrorCode
from protocol.messages.transaction_admin import DescribeTransactionsRequest, ListTransactionsRequest

if TYPE_CHECKING:
    from broker.asks.rows import TransactionRow
    from protocol.messages.transaction_admin import DescribeTransactionsResponse, ListTransactionsResponse

VERSION = 0
UNKNOWN = -1  # an id, a time
DEAD = "Dead"  # the state of an id that is not there


class Listed(NamedTuple):
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    state: str
    producer_id: int
    coordinator: int


def listed() -> Ask[list[Listed]]:
    """The transactional ids of all nodes, by name. Errors: AnswerError."""
    found = []
    for node in (yield from metadata()).brokers:
        answer: ListTransactionsResponse = yield Question(ListTransactionsRequest(), VERSION, Node(node.node_id))
        check("transactions", answer.error_code)
        found += [
            Listed(each.transactional_id, each.transaction_state, each.producer_id, node.node_id)
            for each in answer.transaction_states
        ]
    return sorted(found)


def describe(names: list[str], to: To) -> Ask[dict[str, TransactionRow]]:
    """Transactional ids of one coordinator with their present states. Errors: AnswerError."""
    request = DescribeTransactionsRequest(transactional_ids=names)
    answer: DescribeTransactionsResponse = yield Question(request, VERSION, to)
    found: dict[str, TransactionRow] = {}
    for row in answer.transaction_states:
        name = row.transactional_id
        if row.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            found[name] = dead(name)
            continue
        check(f"transactional id {name:.100}", row.error_code)
        found[name] = {
            "transactional_id": name,
            "state": row.transaction_state,
            "producer_id": row.producer_id,
            "producer_epoch": row.producer_epoch,
            "timeout_ms": row.transaction_timeout_ms,
            "start_ms": row.transaction_start_time_ms,
            "updated_ms": UNKNOWN,
            "partitions": [f"{topic.topic}-{index}" for topic in row.topics for index in sorted(topic.partitions)],
        }
    return found


def describe_listed(wanted: Iterable[Listed]) -> Ask[dict[str, TransactionRow]]:
    """The same of ids that were listed, by one request to each coordinator. Errors: AnswerError."""
    by_node: dict[int, list[str]] = {}
    for each in wanted:
        by_node.setdefault(each.coordinator, []).append(each.transactional_id)
    found: dict[str, TransactionRow] = {}
    for node_id, names in by_node.items():
        found |= yield from describe(names, Node(node_id))
    return found


def dead(name: str) -> TransactionRow:
    """A transactional id that is not there."""
    return {
        "transactional_id": name,
        "state": DEAD,
        "producer_id": UNKNOWN,
        "producer_epoch": UNKNOWN,
        "timeout_ms": 0,
        "start_ms": UNKNOWN,
        "updated_ms": UNKNOWN,
        "partitions": [],
    }
