"""What a healthy cluster does to a right client in an ordinary week: the table that schedules are made of.

An error stands alone only where Kafka 4.4 answers it without a change of state. Whatever changes something is an event
(docs/faults.md), so that every later answer agrees.
"""

from __future__ import annotations

from typing import NamedTuple

CATEGORIES = ("errors", "connection", "group", "broker", "transaction", "records", "program", "fatal")
DEFAULT = ("errors", "connection", "group", "broker", "transaction", "records")

GROUP_MEMBERS = ("OffsetCommit", "TxnOffsetCommit", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat")
COORDINATED = (
    "OffsetCommit",
    "OffsetFetch",
    "JoinGroup",
    "SyncGroup",
    "LeaveGroup",
    "ConsumerGroupHeartbeat",
    "ShareGroupHeartbeat",
    "StreamsGroupHeartbeat",
    "TxnOffsetCommit",
)
TRANSACTIONAL = ("AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn", "Produce")
ANY = ()  # of `apis`: every API but those by which a connection begins
UNTOUCHED = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")  # by which a connection begins


class Happening(NamedTuple):
    """A row.

    category   one of CATEGORIES.
    kind       of the fault that makes it happen.
    words      the fault's own, as its kind takes them.
    apis       where it may happen; ANY: everywhere.
    needs      what must be so: "member" (the request is of one), "group", "transactional_id",
               "brokers" (two or more), "open" (its transaction is), "empty" (its group has no
               members), "plain" (records of a producer that is not idempotent), "first" (at the first request of a
               class alone, for it tells nothing new at others).
    weight     how likely a test is to find a bug by it, 1 to 10: the likeliest are run first.
    source     where Kafka does it.
    """

    category: str
    kind: str
    words: dict[str, object]
    apis: tuple[str, ...]
    needs: tuple[str, ...]
    weight: int
    source: str


def _error(error: str, apis: tuple[str, ...], weight: int, source: str) -> Happening:
    return Happening("errors", "inject_error", {"error": error}, apis, (), weight, source)


def _event(
    category: str, event: str, when: str, apis: tuple[str, ...], needs: tuple[str, ...], weight: int, source: str
) -> Happening:
    return Happening(category, "make_event", {"event": event, "when": when}, apis, needs, weight, source)


def _cut(when: str, needs: tuple[str, ...], weight: int, source: str) -> Happening:
    return Happening("connection", "disconnect_on", {"when": when}, ANY, needs, weight, source)


HAPPENINGS = (
    # -- errors that change nothing, and are to be tried again
    _error("COORDINATOR_LOAD_IN_PROGRESS", COORDINATED, 6, "CoordinatorRuntime: a shard is being loaded"),
    _error("COORDINATOR_NOT_AVAILABLE", ("OffsetCommit",), 6, "GroupCoordinatorService: the write timed out"),
    _error("COORDINATOR_NOT_AVAILABLE", ("FindCoordinator",), 4, "KafkaApis: the internal topic is being made"),
    _error(
        "COORDINATOR_LOAD_IN_PROGRESS",
        ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"),
        6,
        "TransactionCoordinator: a partition is being loaded",
    ),
    _error(
        "CONCURRENT_TRANSACTIONS",
        ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn"),
        5,
        "TransactionCoordinator: the transaction before is being completed",
    ),
    _error("NOT_ENOUGH_REPLICAS", ("Produce",), 6, "ReplicaManager: too few in-sync replicas, for a moment"),
    _error("OFFSET_NOT_AVAILABLE", ("ListOffsets",), 3, "KIP-207: right after an election"),
    # -- connections
    _cut("after", (), 7, "a load balancer, an idle limit, a network that fails: the reply is lost"),
    _cut("before", (), 6, "the same: the request is lost"),
    _cut("middle", ("first",), 2, "the same, in the middle of the reply"),
    Happening("connection", "delay_on", {"ms": 300, "when": "after"}, ANY, ("first",), 2, "a broker that is busy"),
    # -- groups
    _event("group", "expel_member", "before", GROUP_MEMBERS, ("member",), 10, "session.timeout.ms, a long pause"),
    _event("group", "expel_member", "after", ("OffsetCommit", "TxnOffsetCommit"), ("member",), 6, "the same"),
    _event("group", "rebalance", "before", GROUP_MEMBERS, ("member",), 8, "a member joins or leaves"),
    _event("group", "rebalance", "after", ("OffsetCommit", "SyncGroup"), ("member",), 5, "the same"),
    # -- brokers
    _event("broker", "restart", "after", ANY, (), 7, "a rolling restart: the reply is lost"),
    _event("broker", "restart", "before", ANY, (), 5, "a rolling restart: the request is lost"),
    _event("broker", "move_coordinator", "before", (*COORDINATED, "EndTxn"), ("brokers",), 5, "a broker is replaced"),
    _event("broker", "move_leader", "before", ("Produce", "Fetch", "ListOffsets"), ("brokers",), 5, "the same"),
    # -- transactions
    _event("transaction", "abort_transaction", "before", TRANSACTIONAL, ("open",), 8, "transaction.timeout.ms"),
    _event("transaction", "fence_producer", "before", TRANSACTIONAL, ("open",), 7, "KIP-98: another instance began"),
    # -- records and offsets
    Happening(
        "records", "deliver_twice", {}, ("Produce",), ("plain",), 6, "a reply was lost, the producer tries again"
    ),
    _event("records", "expire_offsets", "before", ("JoinGroup", "OffsetFetch"), ("empty",), 4, "KIP-211"),
    # -- the program itself, where one is run (momus explore)
    Happening("program", "kill_program", {"when": "after"}, ANY, (), 9, "kill -9: the request has taken effect"),
    Happening("program", "kill_program", {"when": "before"}, ANY, (), 8, "kill -9: the request is lost"),
    # -- what an operator does, not a cluster: asked for by name
    Happening(
        "fatal",
        "inject_error",
        {"error": "GROUP_AUTHORIZATION_FAILED"},
        ("OffsetCommit", "JoinGroup", "FindCoordinator"),
        (),
        1,
        "an ACL was removed",
    ),
    Happening(
        "fatal",
        "inject_error",
        {"error": "TOPIC_AUTHORIZATION_FAILED"},
        ("Produce", "Fetch"),
        (),
        1,
        "an ACL was removed",
    ),
)


def of_a_program(what: str) -> tuple[Happening, ...]:
    """As `chosen`; "": those of DEFAULT and what happens to the program itself. Errors: ValueError."""
    return chosen(what or ",".join((*DEFAULT, "program")))


def chosen(what: str) -> tuple[Happening, ...]:
    """The rows of these categories, "errors,group"; "": those of DEFAULT. Errors: ValueError: there is no such one."""
    names = [each.strip() for each in what.split(",") if each.strip()] or list(DEFAULT)
    for name in names:
        if name not in CATEGORIES:
            raise ValueError(f"{name!r} is nothing that may happen: give some of {', '.join(CATEGORIES)}")
    return tuple(each for each in HAPPENINGS if each.category in names)
