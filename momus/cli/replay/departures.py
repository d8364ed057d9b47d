"""Known departures from Kafka: differences between a recording of a cluster and momus that SUPPORTED.md names.

Each is known by the first words of its line there, and recognised by what an answer was and is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from broker.handlers import ABSENT
from momus.cli.replay.player import GONE, Found
from protocol.api import api_label

TRANSACTIONS: Final = (
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "TxnOffsetCommit",
    "Produce",
)
SHARES: Final = ("ShareFetch", "ShareAcknowledge")
TOPICS: Final = ("CreateTopics", "DeleteTopics", "CreatePartitions")

OK, UNKNOWN_SERVER_ERROR = 0, -1
NOT_THERE_YET: Final = (3, 5, 15)  # UNKNOWN_TOPIC_OR_PARTITION, LEADER_ and COORDINATOR_NOT_AVAILABLE
OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER = 45, 46
CONCURRENT_TRANSACTIONS, INVALID_RECORD, UNSTABLE_OFFSET_COMMIT, INVALID_RECORD_STATE = 51, 87, 88, 121
INVALID_TOPIC_EXCEPTION, INVALID_REQUEST = 17, 42
ABORTED: Final = (("Ongoing", "CompleteAbort"), ("PrepareAbort", "CompleteAbort"))
_ABSENT: Final = {api_label(key) for keys, _ in ABSENT for key in keys}


class Departure(NamedTuple):
    """`name`: the first words of its line in SUPPORTED.md."""

    name: str
    is_met: Callable[[Found], bool]


def _codes(found: Found, apis: tuple[str, ...], recorded: tuple[int, ...], now: tuple[int, ...]) -> bool:
    """Whether an error code of one of these APIs was one, and is another."""
    is_code = found.api in apis and found.path.endswith("error_code")
    return is_code and found.recorded in recorded and found.found in now


def _names_more_aborted(found: Found) -> bool:
    ours: Any = found.recorded
    theirs: Any = found.found
    return found.path.endswith("aborted_transactions.length") and ours > theirs


KNOWN: Final = (
    Departure(
        "A topic that Metadata or FindCoordinator creates is in the same response",
        lambda found: _codes(found, ("Metadata", "FindCoordinator"), NOT_THERE_YET, (OK,)),
    ),
    Departure(
        "EndTxn is answered when the transaction is complete",
        lambda found: (
            _codes(found, TRANSACTIONS, (CONCURRENT_TRANSACTIONS,), (OK,))
            or _codes(found, ("OffsetFetch",), (UNSTABLE_OFFSET_COMMIT,), (OK,))
        ),
    ),
    Departure(
        "A transaction is aborted when its timeout is over, not at the next check",
        lambda found: found.path.endswith("transaction_state") and (found.recorded, found.found) in ABORTED,
    ),
    Departure("A Fetch of committed records names the aborted transactions that overlap", _names_more_aborted),
    Departure(
        "A batch whose records do not have the lengths or the offset deltas that they should",
        lambda found: _codes(found, ("Produce",), (OK, UNKNOWN_SERVER_ERROR), (INVALID_RECORD,)),
    ),
    Departure(
        "With `producer.state=lookup`, the default, a batch sent again is answered with its offset",
        lambda found: _codes(
            found,
            ("Produce",),
            (OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER),
            (OK, DUPLICATE_SEQUENCE_NUMBER),
        ),
    ),
    Departure(
        "An acknowledgement of records in front of all that are acquired",
        lambda found: _codes(found, SHARES, (UNKNOWN_SERVER_ERROR,), (INVALID_RECORD_STATE,)),
    ),
    Departure(
        "Clients cannot create, delete or grow the topics that the broker keeps for itself",
        lambda found: _codes(found, TOPICS, (OK,), (INVALID_TOPIC_EXCEPTION, INVALID_REQUEST)),
    ),
)


def departure_of(found: Found) -> str | None:
    """The name of the known departure that a difference is; None: it is none."""
    if found.api in _ABSENT and found.path in GONE:
        return f"{found.api} is absent"
    return next((each.name for each in KNOWN if each.is_met(found)), None)
