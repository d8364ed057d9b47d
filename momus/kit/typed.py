"""Types of the kit's own signatures: filters and triggers of faults, filters of the journal, records, settings.

Imported by type checkers and editors alone: a test process does not pay for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

When: TypeAlias = Literal["before", "after"]
WhenOrMiddle: TypeAlias = Literal["before", "after", "middle"]
EventWord: TypeAlias = Literal[
    "rebalance",
    "expel_member",
    "expire_offsets",
    "move_coordinator",
    "move_leader",
    "restart",
    "abort_transaction",
    "fence_producer",
]
Flush: TypeAlias = Literal["memory", "os", "fsync"]
Security: TypeAlias = Literal["sasl_ssl", "sasl_plaintext", "ssl", "mtls"]
Value: TypeAlias = str | bytes | dict[str, Any] | list[Any] | None  # of a record to produce
Isolation: TypeAlias = Literal["uncommitted", "committed"]
GroupState: TypeAlias = Literal[
    "stable",
    "empty",
    "dead",
    "assigning",
    "reconciling",
    "preparing-rebalance",
    "completing-rebalance",
    "not-ready",
]


class Units(TypedDict, total=False):
    """How much time passes."""

    weeks: float
    days: float
    hours: float
    minutes: float
    seconds: float
    milliseconds: float


class TriggerWords(TypedDict, total=False):
    """What on_call, times and with_probability return, and a JSON file has: one of the first three."""

    on_call: int
    times: int
    with_probability: float
    seed: int


Trigger: TypeAlias = Literal["once", "every_time"] | TriggerWords


class Triggers(TypedDict, total=False):
    """When a fault acts, and how it is called; the numbers may stand without `trigger`: times=2."""

    trigger: Trigger | None
    on_call: int | None
    times: int | None
    with_probability: float | None
    seed: int | None
    name: str | None


class OtherFilters(Triggers, total=False):
    """Which requests of clients a fault meets, but for `api` and `client_id`: all that are given must fit."""

    version: int | list[int] | tuple[int, int] | None
    principal: str | None
    connection: str | None
    listener: str | None
    broker: int | None
    topic: str | None
    partition: int | None
    group: str | None
    transactional_id: str | None


class RequestFilters(OtherFilters, total=False):
    """As OtherFilters, with the client."""

    client_id: str | None


class ApiFilters(RequestFilters, total=False):
    """As RequestFilters, with the APIs: one name or several."""

    api: str | list[str] | None


class ClientFilters(OtherFilters, total=False):
    """As OtherFilters, with the APIs."""

    api: str | list[str] | None


class DiskFilters(Triggers, total=False):
    """Which files a fault of the disk meets: those of a log."""

    topic: str | None
    partition: int | None


class LetterFilters(DiskFilters, total=False):
    """Which writes to a dead-letter queue a fault meets: `topic` and `partition` are the queue's."""

    group: str | None


class RegistryFilters(Triggers, total=False):
    """Which requests of the schema registry a fault meets."""

    route: str | None
    subject: str | None
    principal: str | None


class JournalFilters(TypedDict, total=False):
    """Which requests of the journal are meant; names that clients have chosen may hold *, ? and [...]."""

    api: str | None
    client_id: str | None
    principal: str | None
    connection: str | None
    group: str | None
    topic: str | None
    transactional_id: str | None
    error: str | None


class JournalEntry(TypedDict):
    """A request and its reply, as the journal has them.

        (entry,) = broker.journal.verify(api="OffsetCommit", group="billing", times=1)
        assert entry["errors"] == ["COORDINATOR_LOAD_IN_PROGRESS"] and entry["client_id"] == "billing-1"

    number       counts all requests; `answered` gives their order by when they were answered.
    at_ms        when the request was there, in Unix milliseconds of the cluster's clock.
    latency_ms   until its reply left; None: it has none.
    request      its fields by name; None: they cannot be read, or were not kept whole.
    topic_names  topic id -> name, of a request that names topics by their ids.
    fault        the name of the fault that acted on it; only there if one has.
    why          the reason of a refusal, as one sentence; only there if it was refused.
    """

    number: int
    answered: int
    at_ms: int
    latency_ms: float | None
    connection: str
    client_id: str | None
    software: str
    broker: int
    listener: str
    principal: str
    api: str
    version: int
    correlation_id: int
    bytes_in: int
    bytes_out: int
    errors: list[str]
    request: dict[str, Any] | None
    response: dict[str, Any] | None
    topic_names: NotRequired[dict[str, str]]
    fault: NotRequired[str]
    why: NotRequired[str]


Headers: TypeAlias = Mapping[str, str | bytes | None]
