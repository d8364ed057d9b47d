"""The names of the wire types that a declared field can have; their bytes are described by primitives.py."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

Element_co = TypeVar("Element_co", covariant=True)


class Wire:
    """A wire type. A fixed-size one has a struct letter and a size; any other has the letter ""."""

    __slots__ = ("default", "letter", "name", "size")

    def __init__(self, name: str, default: object, letter: str = "", size: int = 0) -> None:
        self.name = name
        self.default = default
        self.letter = letter
        self.size = size

    def __repr__(self) -> str:
        return self.name


class Array(Generic[Element_co]):
    """A list of one element type: a wire type or a nested message."""

    __slots__ = ("element",)

    def __init__(self, element: Element_co) -> None:
        self.element = element

    def __repr__(self) -> str:
        return f"Array({self.element!r})"


Bool: Final = Wire("Bool", False, "?", 1)
Int8: Final = Wire("Int8", 0, "b", 1)
Int16: Final = Wire("Int16", 0, "h", 2)
UInt16: Final = Wire("UInt16", 0, "H", 2)
Int32: Final = Wire("Int32", 0, "i", 4)
UInt32: Final = Wire("UInt32", 0, "I", 4)
Int64: Final = Wire("Int64", 0, "q", 8)
Float64: Final = Wire("Float64", 0.0, "d", 8)
Uuid: Final = Wire("Uuid", bytes(16), "16s", 16)
String: Final = Wire("String", "")
Bytes: Final = Wire("Bytes", b"")
Records: Final = Wire("Records", None)
