"""Takes out of a response to ShareFetch or ShareAcknowledge what it says of states that could not be written.

In Kafka each share partition's state is written by a request of its own, which fails alone. Here a reply waits for all
logs that it depends on; when one cannot be written, what the others store is told all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.coordinator.share.state import Key
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable


def without_lost(request: Any, response: Any, is_lost: Callable[[Key], bool]) -> None:
    """Refuse the acknowledgements, and take back the records, of the share partitions that are lost."""
    acknowledged = {(t.topic_id, p.partition_index) for t in request.topics for p in t.partitions if _batches(p)}
    for topic in response.responses:
        for answer in topic.partitions:
            place = (topic.topic_id, answer.partition_index)
            if not is_lost(Key(request.group_id, *place)):
                continue
            if not hasattr(answer, "records"):
                answer.error_code = answer.error_code or ErrorCode.COORDINATOR_NOT_AVAILABLE
                continue
            answer.records, answer.acquired_records = b"", []  # they can be acquired again at once
            if place in acknowledged and not answer.acknowledge_error_code:
                answer.acknowledge_error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE


def _batches(partition: Any) -> Any:
    return partition.acknowledgement_batches
