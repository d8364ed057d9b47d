"""The rows in which single requests, and the events made at them, are told to whoever explores a test."""

from __future__ import annotations

from typing import TypedDict


class EventRow(TypedDict):
    """An event that a fault has made: `outcome` is "made", or why it could not be; `at_ms`: Unix milliseconds."""

    fault: str
    event: str
    when: str
    api: str
    outcome: str
    at_ms: int


class RequestRow(TypedDict):
    """A request by what it names. `known`: it was kept whole, so that the names are all that it has.

    member       the member that sends it; "": none.
    producer_id  of the records of a Produce; -1: none, or not known.
    """

    number: int
    at_ms: int
    latency_ms: float
    api: str
    version: int
    client_id: str
    connection: str
    broker: int
    groups: list[str]
    topics: list[str]
    transactional_ids: list[str]
    member: str
    producer_id: int
    errors: list[str]
    fault: str
    known: bool


class RequestRows(TypedDict):
    """All requests that the journal has, oldest first; `dropped`: so many bytes of older ones had to make room."""

    requests: list[RequestRow]
    dropped: int
    bytes: int
