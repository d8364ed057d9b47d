"""The rows in which topics, groups and transactions are told, one name for one thing, wherever they were asked for.

The routes of the control plane answer with them, /openapi.json is made from them, and the type checker holds each maker
to them: of a broker, of a proxy, of a fork. Times are Unix milliseconds; -1 is not known.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Window(TypedDict):
    """A part of a longer list: the place of its first row, and how many there are."""

    offset: int
    total: int


class TopicRow(TypedDict):
    """A topic with its sizes over all partitions; `bytes` of another cluster are 0, as nothing tells them cheaply."""

    topic: str
    internal: bool
    partitions: int
    replicas: int
    under_replicated: int
    records: int
    bytes: int


class TopicRows(Window):
    """A window on the topics."""

    topics: list[TopicRow]


class PartitionRow(TypedDict):
    """A partition: its leader and replicas, first, last stable and end offset, and bytes."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    start: int
    stable: int
    end: int
    bytes: int


class ConfigRow(TypedDict):
    """A setting of a topic, and where it is set."""

    name: str
    value: str
    source: str


class TopicDetails(Window):
    """A topic: a window on its partitions, and its configs."""

    topic: str
    internal: bool
    partitions: list[PartitionRow]
    configs: list[ConfigRow]


class GroupRow(TypedDict):
    """A group with its lag over all partitions, which is left out where an end is not known."""

    group: str
    type: str
    state: str
    members: int
    partitions: int
    lag: NotRequired[int]


class GroupRows(Window):
    """A window on the groups. `loading`: so many shards do not answer yet."""

    loading: int
    groups: list[GroupRow]


class MemberRow(TypedDict):
    """A member: how many partitions or tasks it has, and how many it shall have. `epoch` is -1 in a classic group."""

    member: str
    instance: str
    client: str
    host: str
    epoch: int
    has: int
    target: int


class AssignmentRow(TypedDict):
    """Who has a partition or task, or shall have it: `state` is has, to give up, or to come."""

    partition: str
    member: str
    client: str
    since_epoch: int
    state: str


class OffsetRow(TypedDict):
    """A committed offset, or the start offset of a share group, which alone has `archiving`.

    `committed` is -1 where a member has the partition and nothing is committed: there is no `lag` then. `end` and `lag`
    are left out where the end is not known.
    """

    topic: str
    partition: int
    committed: int
    metadata: str
    committed_ms: int
    member: str
    end: NotRequired[int]
    lag: NotRequired[int]
    archiving: NotRequired[int]


class LagRow(TypedDict):
    """A committed offset beside the end of its partition; `committed` is -1 where nothing is."""

    topic: str
    partition: int
    committed: int
    end: int
    lag: int


class DeadLetters(TypedDict):
    """The dead-letter queue of a share group ("": none), and why it cannot be written to. Source: KIP-1191."""

    queue: str
    exists: bool
    copies: bool
    why_not: str


class GroupDetails(TypedDict):
    """A group of any type; one that does not exist is Dead, with the type "". `dead_letters` is of share groups."""

    group: str
    type: str
    state: str
    group_epoch: int
    assignment_epoch: int
    protocol: str
    members: list[MemberRow]
    assignments: list[AssignmentRow]
    offsets: list[OffsetRow]
    dead_letters: NotRequired[DeadLetters]


class TransactionRow(TypedDict):
    """A transactional id with its present state; Dead: there is none."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    updated_ms: int
    partitions: list[str]


class TransactionRows(Window):
    """A window on the transactional ids. `loading`: so many shards do not answer yet."""

    loading: int
    transactions: list[TransactionRow]


class TransactionEvent(TypedDict):
    """What happened to a transactional id: `added` are partitions; `fault` is the fault that acted, or ""."""

    time_ms: int
    what: str
    producer_id: int
    producer_epoch: int
    added: list[str]
    why: str
    fault: str


class TransactionDetails(TransactionRow):
    """A transactional id: the groups whose offsets wait in it, and its events, newest first."""

    groups: list[str]
    events: list[TransactionEvent]
