"""What a .proto consists of, as it is written: blocks, fields, options. `tree.py` makes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Text(str):
    """The value of an option that is a text; any other value of one word is a str."""

    __slots__ = ()


@dataclass(slots=True)
class Option:
    """`value`: a Text, a word, a dict, a list, or the Option of a part: (a).b = 1 has that of b."""

    name: str
    is_custom: bool
    value: Any


@dataclass(slots=True)
class Ranges:
    """What one `reserved` or `extensions` names: texts in quotes, numbers, pairs of numbers; "max" for the last one."""

    values: list[Any]
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Member:
    """A field, a group, or a value of an enum, which have a number."""

    label: str
    type: str
    name: str
    number: str
    options: list[Option] = field(default_factory=list)
    fields: list[Member] = field(default_factory=list)  # of a group


@dataclass(slots=True)
class Rpc:
    """A method: the types that it takes and returns, with "stream " before them."""

    name: str
    request: str
    response: str
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Block:
    """What stands in braces, and the file itself. `kind`: its word, or "" for the file."""

    kind: str
    name: str
    syntax: str = ""
    package: str = ""
    imports: list[str] = field(default_factory=list)
    public_imports: list[str] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[Ranges] = field(default_factory=list)
    extensions: list[Ranges] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    groups: list[Member] = field(default_factory=list)
    oneofs: list[Block] = field(default_factory=list)
    extends: list[Block] = field(default_factory=list)
    messages: list[Block] = field(default_factory=list)
    enums: list[Block] = field(default_factory=list)
    services: list[Block] = field(default_factory=list)
    rpcs: list[Rpc] = field(default_factory=list)

    @property
    def is_map_entry(self) -> bool:
        """Whether it is what generated classes send for a map."""
        return any(each.name == "map_entry" and each.value == "true" for each in self.options)
