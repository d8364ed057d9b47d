"""What a request names: topics, partitions, groups and transactional ids, found by the names of its fields."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from protocol.declare import Message
from protocol.wire import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.coordinator.share.sessions import ShareSession
    from broker.partitions.fetch_session import FetchSession

_GROUPS: Final = ("group_id", "groups", "groups_names", "group_ids", "group")
_TRANSACTIONAL_IDS: Final = ("transactional_id", "v3_and_below_transactional_id", "transactional_ids")
_TOPIC_NAMES: Final = ("name", "topic", "topic_name")
_TOPIC_LISTS: Final = ("topic_names", "subscribed_topic_names", "source_topics", "repartition_sink_topics")
_INDEXES: Final = ("index", "partition", "partition_index", "partition_id")
GROUP_TYPE, TRANSACTION_TYPE = 0, 1  # of a coordinator's key
TOPIC_RESOURCE, GROUP_RESOURCE = 2, 32


class Named:
    """The names in one request."""

    __slots__ = ("groups", "partitions", "topics", "transactional_ids")

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.partitions: set[tuple[str, int]] = set()
        self.groups: set[str] = set()
        self.transactional_ids: set[str] = set()

    def add_fetched(self, session: FetchSession | None, topic_name: Callable[[bytes], str]) -> None:
        """Add the partitions of the session of a Fetch, which does not name them again."""
        for each in session.wanted.values() if session is not None else ():
            self.add(each.topic or topic_name(each.topic_id), each.partition)

    def add_share_fetched(self, session: ShareSession | None, topic_name: Callable[[bytes], str]) -> None:
        """Add the partitions of the session of a ShareFetch."""
        for topic_id, index in session.partitions if session is not None else ():
            self.add(topic_name(topic_id), index)

    def add(self, topic: str, partition: int) -> None:
        """Add a partition."""
        self.topics.add(topic)
        self.partitions.add((topic, partition))


class Met(NamedTuple):
    """A request that an event is about."""

    api_key: int
    request: Any  # a Message
    named: Named


def named_in(request: Message, topic_name: Callable[[bytes], str]) -> Named:
    """What a request names. `topic_name`: the name of a topic id, "" where there is none."""
    named = Named()
    _walk(request, "", named, topic_name)
    return named


@cache
def may_name(cls: type[Message]) -> frozenset[str]:
    """What messages of a class can name at all: "group", "topic", "transactional_id"."""
    found: set[str] = set()
    fields = {each.name for each in cls.FIELDS}
    for these, kinds in (
        (_GROUPS, ("group",)),
        (_TRANSACTIONAL_IDS, ("transactional_id",)),
        (_TOPIC_LISTS, ("topic",)),
        (("key_type",), ("group", "transactional_id")),
        (("resource_type",), ("topic", "group")),
    ):
        if fields.intersection(these):
            found.update(kinds)
    for each in cls.FIELDS:
        inner: object = each.wire
        if isinstance(inner, Array):
            inner = inner.element
            if "topic" in each.name:
                found.add("topic")
        if isinstance(inner, type) and issubclass(inner, Message):
            found |= may_name(inner)
    return frozenset(found)


def _walk(message: Message, topic: str, named: Named, topic_name: Callable[[bytes], str]) -> None:
    """Go through the fields. `topic`: the topic that the message is about."""
    _coordinator_keys(message, named)
    for each in message.FIELDS:
        name, value = each.name, getattr(message, each.name)
        if name in _GROUPS:
            _add(named.groups, value)
        elif name in _TRANSACTIONAL_IDS:
            _add(named.transactional_ids, value)
        elif name in _TOPIC_LISTS:
            _add(named.topics, value)
        elif name in _INDEXES and topic and isinstance(value, int):
            named.partitions.add((topic, value))
        if isinstance(value, Message):
            _walk(value, topic, named, topic_name)
        elif isinstance(value, list):
            for inner in value:
                if isinstance(inner, Message):
                    about = _topic_of(inner, name, topic_name) or topic
                    if about:
                        named.topics.add(about)
                    _walk(inner, about, named, topic_name)
                elif isinstance(inner, int) and topic and name.startswith("partition"):
                    named.partitions.add((topic, inner))
                elif isinstance(inner, str) and name == "topics":
                    named.topics.add(inner)


def _topic_of(message: Message, container: str, topic_name: Callable[[bytes], str]) -> str:
    """The topic that an element of a list is about, "" if the list is not one of topics."""
    if "topic" not in container:
        return ""
    for name in _TOPIC_NAMES:
        value = getattr(message, name, None)
        if isinstance(value, str) and value:
            return value
    topic_id = getattr(message, "topic_id", None)
    return topic_name(topic_id) if topic_id else ""


def _coordinator_keys(message: Message, named: Named) -> None:
    """FindCoordinator and the requests about settings name things by a type and a key."""
    key_type = getattr(message, "key_type", None)
    if key_type is not None:
        into = {GROUP_TYPE: named.groups, TRANSACTION_TYPE: named.transactional_ids}.get(key_type)
        if into is not None:
            _add(into, message.key if hasattr(message, "key") else "")
            _add(into, getattr(message, "coordinator_keys", []))
    resource_type = getattr(message, "resource_type", None)
    if resource_type in (TOPIC_RESOURCE, GROUP_RESOURCE):
        _add(named.topics if resource_type == TOPIC_RESOURCE else named.groups, getattr(message, "resource_name", ""))


def _add(into: set[str], value: Any) -> None:
    if isinstance(value, str):
        if value:
            into.add(value)
    elif isinstance(value, list):
        into.update(each for each in value if isinstance(each, str))
