"""A question to a cluster: what it asks for, of whom, and how the answers are sent to who asks.

An Ask is a generator. It yields a Question, is sent the response, and returns rows or values. It does no input or
output: the drivers do, in the process (`broker/shell/asking.py`) and over sockets (`momus/client/kafka_client.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from protocol.declare import Message
from protocol.errors import ErrorCode
from protocol.messages.cluster import FindCoordinatorRequest, MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.wire import Array

if TYPE_CHECKING:
    from protocol.messages.cluster import FindCoordinatorResponse

T = TypeVar("T")
METADATA_VERSION, FIND_VERSION = 12, 4
# Another node has become what the asked one was, or will soon.
MOVED: Final = frozenset({
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_CONTROLLER,
})  # fmt: skip  # one argument, no indent of its own
# The coordinator is there soon: Apache Kafka makes its topic when it is first asked for.
SOON: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
PAUSE_S: Final = 0.1
NOT_YET: Final = -1  # the node that leads a partition without a leader
CODES: Final = ("error_code", "partition_error_code")


class Leader(NamedTuple):
    """The node that leads a partition."""

    topic: str
    partition: int


class Group(NamedTuple):
    """The coordinator of a group."""

    group_id: str


class TxnId(NamedTuple):
    """The coordinator of a transactional id."""

    transactional_id: str


class Node(NamedTuple):
    """A node by its id."""

    node_id: int


class Controller(NamedTuple):
    """The node that changes topics and settings: the controller, where the cluster names one."""


ANY: Final = None
To: TypeAlias = "Leader | Group | TxnId | Node | Controller | None"


class Question(NamedTuple):
    """One request. `version`: the newest that who asks understands; `to`: who answers it."""

    request: Message
    version: int
    to: To = ANY


class Sent(NamedTuple):
    """A question with the id of its node; None: any node."""

    request: Message
    version: int
    node_id: int | None


Ask: TypeAlias = Generator[Question, Any, T]
Sending: TypeAlias = Generator["Sent | None", Any, T]  # None: a pause of PAUSE_S


class AnswerError(Exception):
    """A cluster has refused. `code`: Kafka's."""

    def __init__(self, what: str, code: int, message: str | None = None) -> None:
        super().__init__(f"{what}: {label(code)}{': ' + message if message else ''}")
        self.what = what
        self.code = code
        self.message = message


def label(code: int) -> str:
    """The name of an error code, or its number where Kafka has none."""
    return ErrorCode(code).name if code in ErrorCode.__members__.values() else f"error {code}"


def check(what: str, code: int, message: str | None = None) -> None:
    """Errors: AnswerError: the code is one."""
    if code:
        raise AnswerError(what, code, message)


class Places:
    """Who leads and coordinates what, as the cluster tells; kept until it has moved.

    patience   how many pauses are made until a coordinator is there.
    """

    def __init__(self, patience: int = 0) -> None:
        self.patience = patience
        self.addresses: dict[int, tuple[str, int]] = {}
        self._known: dict[To, int | None] = {}

    def find(self, to: To) -> Sending[int | None]:
        """The id of the node. Errors: AnswerError: there is none."""
        if to is None or isinstance(to, Node):
            return None if to is None else to.node_id
        found = self._known.get(to, NOT_YET)
        if found == NOT_YET:
            found = self._known[to] = yield from self._look(to)
        return found

    def forget(self, to: To) -> None:
        """It has moved."""
        self._known.pop(to, None)

    def _look(self, to: Leader | Group | TxnId | Controller) -> Sending[int | None]:
        if isinstance(to, (Group, TxnId)):
            key, kind = to[0], int(isinstance(to, TxnId))
            request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
            told: FindCoordinatorResponse = yield from patiently(Sent(request, FIND_VERSION, None), self.patience)
            found = told.coordinators[0] if told.coordinators else told  # versions below 4 find one
            what = f"coordinator of {'transaction' if kind else 'group'} {key:.100}"
            check(what, found.error_code, found.error_message)
            self.addresses[found.node_id] = found.host, found.port
            return int(found.node_id)
        topics = [MetadataRequestTopic(name=to.topic)] if isinstance(to, Leader) else []
        asked = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        answer: MetadataResponse = yield Sent(asked, METADATA_VERSION, None)
        self.learn(answer)
        if isinstance(to, Controller):
            return answer.controller_id if answer.controller_id in self.addresses else None
        topic = next((each for each in answer.topics if each.name == to.topic), None)  # some brokers tell of all
        check(f"topic {to.topic:.100}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code)
        assert topic is not None
        leader = next((each.leader_id for each in topic.partitions if each.partition_index == to.partition), -1)
        check(f"{to.topic:.100}-{to.partition}", ErrorCode.LEADER_NOT_AVAILABLE if leader < 0 else ErrorCode.NONE)
        return leader

    def learn(self, answer: MetadataResponse) -> None:
        """Take where the nodes are and what they lead, as Metadata tells."""
        self.addresses = {each.node_id: (each.host, each.port) for each in answer.brokers}
        for topic in answer.topics:
            for each in topic.partitions if topic.name is not None else ():
                self._known[Leader(topic.name or "", each.partition_index)] = each.leader_id

    def clear(self) -> None:
        """Nothing is known any more but where nodes were."""
        self._known.clear()


def routed(ask: Ask[T], places: Places) -> Sending[T]:
    """What an ask sends, each with its node; what has moved is asked again there, once. Errors: AnswerError."""
    try:
        question = next(ask)
        while True:
            request, version, to = question
            sent = Sent(request, version, (yield from places.find(to)))
            response = yield from patiently(sent, 0 if to is None else places.patience)
            if to is not None and not MOVED.isdisjoint(codes_in(response)):
                places.forget(to)
                response = yield Sent(request, version, (yield from places.find(to)))
            if isinstance(response, MetadataResponse):
                places.learn(response)
            question = ask.send(response)
    except StopIteration as end:
        value: T = end.value
        return value


def patiently(sent: Sent, patience: int) -> Sending[Any]:
    """The response to what is sent again, after pauses, until a coordinator is there."""
    response = yield sent
    while patience and not SOON.isdisjoint(codes_in(response)):
        patience -= 1
        yield None
        response = yield sent
    return response


def codes_in(message: Message) -> Iterator[int]:
    """The error codes of a response, and of the messages in it."""
    for field in type(message).FIELDS:
        value = getattr(message, field.name)
        if field.name in CODES:
            yield value
        elif isinstance(value, Message):
            yield from codes_in(value)
        elif value and isinstance(field.wire, Array) and isinstance(value[0], Message):
            for each in value:
                yield from codes_in(each)
