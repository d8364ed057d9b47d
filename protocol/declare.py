"""How a message is declared: a slotted class whose fields carry a wire type and version ranges.

    @message(api_key=8, versions="0-10", flexible="8+")
    class OffsetCommitRequest(Message):
        group_id: str = field(String)
        generation_id_or_member_epoch: int = field(Int32, "1+", default=-1)
        topics: list[OffsetCommitRequestTopic] = field(Array(OffsetCommitRequestTopic))

One declaration serves three readers: mypy and editors see a keyword-only dataclass in which every field has a
default; `primitives.struct(cls, version)` makes the construct.Struct of one version, the reference; `protocol.codegen`
makes the flat functions that run. The standard library's dataclass is not used: it compiles several methods a
class at import (0.5 ms), here `__init__` is compiled when a class is first called.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar, cast, dataclass_transform

from protocol.wire import Array, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self

# What a field can hold: one value, a list, or a nested message.
WireType: TypeAlias = "Wire | Array[Wire | type[Message]] | type[Message]"

NEVER: Final = 1 << 15  # above every version there is: a field or an encoding that no version has
_UNSET: Any = object()  # stands for "a new list" or "a new nested message" as a default argument


@cache
def version_range(text: str) -> tuple[int, int]:
    """First and last version of Kafka's notation: "3", "2-4", "1+", "none"."""
    if text == "none":
        return NEVER, -1
    if text.endswith("+"):
        return int(text[:-1]), NEVER
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class Field:
    """One field of a message: its wire type, the versions that have it, null or tag it."""

    __slots__ = ("default", "name", "nullable", "tag", "tagged", "versions", "wire")

    def __init__(self, wire: WireType, versions: str, nullable: str, tag: int, tagged: str, default: Any) -> None:
        self.name = ""
        self.wire = wire
        self.versions = versions
        self.nullable = nullable
        self.tag = tag
        self.tagged = tagged
        self.default = default

    def is_in(self, version: int) -> bool:
        """Whether a version of the message has the field."""
        first, last = version_range(self.versions)
        return first <= version <= last

    def is_nullable(self, version: int) -> bool:
        """Whether the field may be null in a version."""
        first, last = version_range(self.nullable)
        return first <= version <= last

    def is_tagged(self, version: int) -> bool:
        """Whether the field is a tagged one (KIP-482) in a version."""
        first, last = version_range(self.tagged)
        return first <= version <= last

    @property
    def is_new_list(self) -> bool:
        """Whether the default is an empty list, which must be a new one each time."""
        return self.default is _UNSET and self.wire.__class__ is Array

    @property
    def is_new_message(self) -> bool:
        """Whether the default is a nested message, which must be a new one each time."""
        return self.default is _UNSET and isinstance(self.wire, type)

    def fresh_default(self) -> Any:
        """The value of a field that a version does not have."""
        if self.default is not _UNSET:
            return self.default
        return [] if isinstance(self.wire, Array) else cast("Callable[[], Message]", self.wire)()


def field(
    wire: WireType,
    versions: str = "0+",
    *,
    nullable: str = "none",
    tag: int = -1,
    tagged: str = "none",
    default: Any = _UNSET,
) -> Any:
    """Declare a field. Without a default it starts as zero, "", empty bytes, a null uuid, [] or a new message.

    A nested message that is tagged and never null starts as None, which stands for "left out", so that the answer to
    a Fetch does not build three of them for each partition to say nothing.
    """
    if default is _UNSET:
        if wire.__class__ is Wire:
            default = wire.default
        elif tag >= 0 and nullable == "none" and isinstance(wire, type):
            default = None
    return Field(wire, versions, nullable, tag, tagged, default)


class _Slotted(type):
    """Makes slots of the declared fields, in one class creation; a decorator would need a second one."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _Slotted:
        fields = tuple([value for value in body.values() if value.__class__ is Field])
        if fields:
            kept = {key: value for key, value in body.items() if value.__class__ is not Field}
            for key, value in body.items():
                if value.__class__ is Field:
                    value.name = key
            kept["FIELDS"] = fields
            kept["__slots__"] = tuple([each.name for each in fields])
            body = kept
        elif bases:
            body["__slots__"] = ()
        return type.__new__(cls, name, bases, body)


class Message(metaclass=_Slotted):
    """Base of all declared messages, nested ones included."""

    __slots__ = ("unknown_tags",)

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    API_KEY: ClassVar[int] = -1  # the record type where the message is a record
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_SINCE: ClassVar[int] = NEVER

    unknown_tags: dict[int, bytes] | None  # tagged fields that the declaration does not know, kept as they came

    def __init__(self, **values: Any) -> None:
        _make_init(type(self))
        self.__init__(**values)  # type: ignore[misc]  # this class's own, made a line above

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        mine, theirs = self.unknown_tags or None, cast("Any", other).unknown_tags or None
        return mine == theirs and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # mutable

    @classmethod
    def many(cls, field: str, values: Iterable[Any]) -> list[Self]:
        """A message for each value of `field`, the other fields at their defaults: half the time of a call for each."""
        make = _makers.get((cls, field))
        if make is None:
            make = _makers[cls, field] = _make_many(cls, field)
        return make(values)

    def __repr__(self) -> str:
        values = [f"{name}={getattr(self, name)!r}" for name in self.__slots__]
        if self.unknown_tags:
            values.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{type(self).__name__}({', '.join(values)})"


_makers: dict[tuple[type[Message], str], Callable[[Iterable[Any]], list[Any]]] = {}


def _make_many(cls: type[Message], field: str) -> Callable[[Iterable[Any]], list[Any]]:
    """Compile `many` of one class and field."""
    names: dict[str, Any] = {"cls": cls, "new": object.__new__}
    body = ["each = new(cls)", "each.unknown_tags = None"]
    for each in cls.FIELDS:
        names[f"_new_{each.name}"] = each.wire
        default = repr(each.default)
        if each.default is _UNSET:
            default = "[]" if each.is_new_list else f"_new_{each.name}()"
        body.append(f"each.{each.name} = {'value' if each.name == field else default}")
    text = "def many(values):\n made = []\n for value in values:\n  " + "\n  ".join(body)
    exec(compile(f"{text}\n  made.append(each)\n return made", f"<{cls.__name__}.many>", "exec"), names)
    return cast("Callable[[Iterable[Any]], list[Any]]", names["many"])


def _make_init(cls: type[Message]) -> None:
    """Compile `__init__` of one class: keyword-only, every field with its default."""
    parameters, body, names = [], ["self.unknown_tags = None"], {"_UNSET": _UNSET}
    for each in cls.FIELDS:
        if each.default is _UNSET:
            new = "[]" if each.is_new_list else f"_new_{each.name}()"
            names[f"_new_{each.name}"] = each.wire
            parameters.append(f"{each.name}=_UNSET")
            body.append(f"self.{each.name} = {new} if {each.name} is _UNSET else {each.name}")
        else:
            parameters.append(f"{each.name}={each.default!r}")
            body.append(f"self.{each.name} = {each.name}")
    star = "*, " if parameters else ""
    text = f"def __init__(self, {star}{', '.join(parameters)}):\n " + "\n ".join(body)
    exec(compile(text, f"<{cls.__name__}.__init__>", "exec"), names)
    cls.__init__ = names["__init__"]  # type: ignore[method-assign]  # from here on called directly


M = TypeVar("M", bound=Message)

DECLARED: Final[dict[str, type[Message]]] = {}  # by name, what has been declared in the modules imported so far


@dataclass_transform(kw_only_default=True)
def message(*, versions: str, flexible: str = "none", api_key: int = -1) -> Callable[[type[M]], type[M]]:
    """Declare a message, a record or other data that stands for itself."""

    def declared(cls: type[M]) -> type[M]:
        cls.API_KEY = api_key
        cls.MIN_VERSION, cls.MAX_VERSION = version_range(versions)
        cls.FLEXIBLE_SINCE = version_range(flexible)[0]
        DECLARED[cls.__name__] = cls
        return cls

    return declared


@dataclass_transform(kw_only_default=True)
def nested(cls: type[M]) -> type[M]:
    """Declare a part of messages; it has the version of the message around it."""
    return cls
