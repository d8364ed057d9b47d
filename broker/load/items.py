"""What files say, as values: topics with bytes of records, groups, users and so on, each with its place in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from broker.load.problems import Path, Problem
    from broker.load.texts import Text


class Where(NamedTuple):
    """A place in a file."""

    text: Text
    path: Path

    def problem(self, message: str, *more: str | int) -> Problem:
        """What is wrong there, or further in."""
        return self.text.problem((*self.path, *more), message)

    def at(self, *more: str | int) -> Where:
        """A place further in."""
        return Where(self.text, (*self.path, *more))


class Row(NamedTuple):
    """A record. partition None: by the key. timestamp_ms None: when it is loaded."""

    where: Where
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int | None


class TopicItem(NamedTuple):
    """A topic. partitions and replicas -1: the broker's default."""

    where: Where
    name: str
    partitions: int
    replicas: int
    config: dict[str, str]
    rows: list[Row]


class OffsetItem(NamedTuple):
    """An offset that a group has committed."""

    where: Where
    topic: str
    partition: int
    offset: int
    metadata: str


class GroupItem(NamedTuple):
    """A group without members."""

    where: Where
    name: str
    offsets: list[OffsetItem]


class UserItem(NamedTuple):
    """A user. password "": there is none."""

    where: Where
    name: str
    password: str


class QuotaItem(NamedTuple):
    """Quotas of one entity. entity: type as Kafka spells it -> name, None for the default one."""

    where: Where
    entity: dict[str, str | None]
    rates: dict[str, float]


class PlainItem(NamedTuple):
    """An ACL or a fault, as the control plane takes it."""

    where: Where
    body: dict[str, Any]


class ClockItem(NamedTuple):
    """How the clock is moved: set_ms, then advance_ms, then it stands."""

    where: Where
    set_ms: int | None
    advance_ms: int
    freeze: bool


class SchemaItem(NamedTuple):
    """A schema. references: as Confluent's registry takes them."""

    where: Where
    subject: str
    schema_type: str
    schema: str
    references: list[dict[str, Any]]


class Load:
    """All that files say.

    files    the names of the documents.
    digest   of all that was read; "" where it is not from files.
    """

    def __init__(self) -> None:
        self.topics: list[TopicItem] = []
        self.groups: list[GroupItem] = []
        self.users: list[UserItem] = []
        self.acls: list[PlainItem] = []
        self.quotas: list[QuotaItem] = []
        self.faults: list[PlainItem] = []
        self.schemas: list[SchemaItem] = []
        self.clock: ClockItem | None = None
        self.files: list[str] = []
        self.digest = ""

    @property
    def name(self) -> str:
        """The files, for messages."""
        return ", ".join(self.files)
