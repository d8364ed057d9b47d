"""What the handlers of administrative requests share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from broker.coordinator.written import Records
from broker.turn.decision import Decision
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.coordinator.runtime import Shard

T = TypeVar("T")

# All operations are allowed; Kafka's bit fields.
CLUSTER_OPERATIONS = 8096
TOPIC_OPERATIONS = 3576
GROUP_OPERATIONS = 3400
NOT_ASKED = -(1 << 31)

LONGEST_MESSAGE = 1000


class HasMetadataLog(Protocol):
    """A broker whose metadata log can be written to."""

    @property
    def metadata_shard(self) -> Shard: ...


def repeated(items: Iterable[T]) -> set[T]:
    """The items that occur more than once."""
    seen: set[T] = set()
    return {item for item in items if item in seen or seen.add(item)}  # type: ignore[func-returns-value]  # None


def refuse(result: Any, error: KafkaError) -> None:
    """Put an error into one of several results. The message is cut, because it may quote a long name."""
    result.error_code = error.code
    result.error_message = error.message and error.message[:LONGEST_MESSAGE]


def describe_each(request: Any, describe: Callable[[str], Any], refused: Callable[..., Any]) -> list[Any]:
    """Describe the groups of a ConsumerGroupDescribe and its like; one that cannot be described is refused alone.

    describe  the description of a group. Errors: KafkaError.
    refused   the class of descriptions.
    """
    groups = []
    for group_id in request.group_ids:
        try:
            described = describe(group_id)
        except KafkaError as error:
            described = refused(group_id=group_id, error_code=error.code, error_message=error.message)
        else:
            if request.include_authorized_operations:
                described.authorized_operations = GROUP_OPERATIONS
        groups.append(described)
    return groups


def after_metadata(broker: HasMetadataLog, response: Any, values: Iterable[bytes] = ()) -> Decision:
    """A reply that is sent when these records of the metadata log are durable."""
    records = [(None, value) for value in values]
    return Decision(response, writes=((broker.metadata_shard, Records(records)),) if records else ())
