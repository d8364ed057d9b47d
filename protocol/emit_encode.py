"""Writes the encode function of one version of a message.

Neighbouring fixed-size fields are packed by one cached struct call, together with the length byte of what follows
while that is below 128, and with the zero that says "no tagged fields". Values are appended to a list and joined
once at the end, records in a slice of a file when they are read; `encode_parts` leaves out both, so that records can go
to the socket without being copied.
"""

from __future__ import annotations

import struct
from typing import Any

from protocol import codec_support
from protocol.declare import Field, Message, WireType
from protocol.emit import Emitter
from protocol.wire import Array, Records, String, Wire


def encoder(cls: type[Message], version: int, name: str) -> tuple[str, dict[str, Any]]:
    """Source of `encode(o)` or `encode_parts(o)`, and the names it needs."""
    emit = _Encoder(cls, version, reads=name == "encode")
    with emit.block(f"def {name}(o):"):
        emit.line("out = []")
        emit.line("w = out.append")
        emit.message(cls, "o")
        emit.flush()
        if name == "encode":
            emit.line('return b"".join(out)')
        else:
            emit.line("return merge_parts(out)" if emit.has_records else 'return [b"".join(out)]')
    return emit.source(), emit.names


class _Encoder(Emitter):
    def __init__(self, cls: type[Message], version: int, *, reads: bool) -> None:
        super().__init__(cls, version)
        self.reads = reads  # a slice of a file is read where it is met
        self.pending: list[tuple[str, str]] = []  # struct letter, expression; "V" is a varint, always the last
        self.w = "w"  # appends to the list that is being filled
        self.names |= {
            "BYTES": codec_support.BYTES,
            "merge_parts": codec_support.merge_parts,
            "pack": struct.pack,
            "string_size": codec_support.string_size,
            "tag_section": codec_support.tag_section,
            "uvarint": codec_support.uvarint,
        }

    def flush(self, long_varint: str = "uvarint") -> None:
        """Write the fixed-size values that wait, by one call."""
        pending, self.pending = self.pending, []
        if not pending:
            return
        last_letter, n = pending[-1]
        if last_letter != "V":
            self.line(f"{self.w}({self.packed(pending)})")
        elif len(pending) == 1:
            self.line(f"{self.w}(BYTES[{n}] if {n} < 128 else {long_varint}({n}))")
        else:
            short = self.packed([*pending[:-1], ("B", n)])
            long = f"{self.packed(pending[:-1])} + {long_varint}({n})"
            self.line(f"{self.w}({short} if {n} < 128 else {long})")

    def packed(self, values: list[tuple[str, str]]) -> str:
        letters = "".join([letter for letter, _ in values])
        if letters == "x":
            return r'b"\0"'
        arguments = ", ".join([value for letter, value in values if letter != "x"])
        return f"{self.method('pack', letters)}({arguments})"

    def message(self, cls: type[Message], var: str) -> None:
        """Write the fields of an object; the last ones may still wait for a flush."""
        for each in self.present(cls):
            self.value(each.wire, f"{var}.{each.name}", each.is_nullable(self.version))
        if self.flexible:
            self.tags(cls, var)

    def value(self, kind: WireType, expression: str, nullable: bool) -> None:
        if isinstance(kind, Array):
            self.array(kind, expression, nullable)
        elif not isinstance(kind, Wire):
            self.nested(kind, expression, nullable)
        elif kind.letter:
            self.pending.append((kind.letter, expression))
        else:
            self.sized(kind, expression, nullable)

    def nested(self, cls: type[Message], expression: str, nullable: bool, in_tag: bool = False) -> None:
        """Write a message; null is the byte -1, but within a tagged field a 0."""
        var = self.fresh("o")
        if not nullable:
            self.line(f"{var} = {expression}")
            self.message(cls, var)
            return
        self.flush()
        self.line(f"{var} = {expression}")
        with self.block(f"if {var} is None:"):
            self.line(f"{self.w}(BYTES[{0 if in_tag else 255}])")
        with self.block("else:"):
            self.pending.append(("b", "1"))
            self.message(cls, var)
            self.flush()

    def sized(self, kind: Wire, expression: str, nullable: bool) -> None:
        """Write a string, bytes or records after their length."""
        s, n = self.fresh("s"), self.fresh("n")
        encode = ".encode()" if kind is String else ""
        plus = " + 1" if self.flexible else ""
        if nullable:
            self.line(f"{s} = {expression}")
            with self.block(f"if {s} is None:"):
                self.line(f'{s} = b""')
                self.line(f"{n} = {0 if self.flexible else -1}")
            with self.block("else:"):
                if encode:
                    self.line(f"{s} = {s}{encode}")
                self.line(f"{n} = len({s}){plus}")
        else:
            self.line(f"{s} = {expression}{encode}")
            self.line(f"{n} = len({s}){plus}")
        self.pending.append(("V" if self.flexible else self.length_letter(kind), n))
        self.flush("string_size" if kind is String else "uvarint")
        is_slice = self.reads and kind is Records
        self.line(f'{self.w}({s} if hasattr({s}, "__getitem__") else {s}.read())' if is_slice else f"{self.w}({s})")

    def array(self, kind: Array[Any], expression: str, nullable: bool) -> None:
        items, n = self.fresh("items"), self.fresh("n")
        plus = " + 1" if self.flexible else ""
        self.line(f"{items} = {expression}")
        if nullable:
            with self.block(f"if {items} is None:"):
                self.line(f"{items} = ()")
                self.line(f"{n} = {0 if self.flexible else -1}")
            with self.block("else:"):
                self.line(f"{n} = len({items}){plus}")
        else:
            self.line(f"{n} = len({items}){plus}")
        self.pending.append(("V" if self.flexible else "i", n))
        self.flush()
        self.elements(kind.element, items)

    def elements(self, kind: Wire | type[Message], items: str) -> None:
        if isinstance(kind, Wire) and kind.letter:
            if len(kind.letter) == 1:
                self.line(f'{self.w}(pack(f">{{len({items})}}{kind.letter}", *{items}))')
            else:
                self.line(f'{self.w}(b"".join({items}))')
            return
        var = self.fresh("o")
        is_run = isinstance(kind, type) and self.is_run(kind)
        if is_run and not self.flexible and not any(each.wire is String for each in self.present(kind)):  # type: ignore[arg-type]  # is_run: a class
            values = [(each.wire.letter, f"{var}.{each.name}") for each in self.present(kind)]  # type: ignore[union-attr,arg-type]  # the same
            if values:
                self.line(f'{self.w}(b"".join([{self.packed(values)} for {var} in {items}]))')
            return
        with self.block(f"for {var} in {items}:"):
            lines = len(self.lines)
            if is_run:
                self.fixed_stride(kind, var)  # type: ignore[arg-type]  # a class
            elif isinstance(kind, type):
                self.message(kind, var)
                self.flush()
            else:
                self.value(kind, var, False)
                self.flush()
            if len(self.lines) == lines:
                self.line("pass")

    def fixed_stride(self, cls: type[Message], var: str) -> None:
        """One pack call for an element whose string is empty and that has no tags, else the general path."""
        plain, values = [], []
        for each in self.present(cls):
            name = f"{var}.{each.name}"
            if each.wire is not String:
                values.append((each.wire.letter, name))  # type: ignore[union-attr]  # a fixed-size Wire
                continue
            one = 1 if self.flexible else 0
            if each.is_nullable(self.version):
                plain.append(f"not {name}")
                values.append((self.length_letter(String), f"{one - 1} if {name} is None else {one}"))
            else:
                plain.append(f'{name} == ""')
                values.append((self.length_letter(String), str(one)))
        if self.flexible:
            plain += self.no_tags(cls, var)
            values.append(("x", ""))
        with self.block(f"if {' and '.join(plain)}:"):
            self.line(f"{self.w}({self.packed(values)})")
        with self.block("else:"):
            self.message(cls, var)
            self.flush()

    def no_tags(self, cls: type[Message], var: str) -> list[str]:
        """The conditions under which an object has no tagged field to write."""
        return [
            f"not {var}.unknown_tags",
            *[self.is_default(each, f"{var}.{each.name}") for each in self.tagged(cls)],
        ]

    def tags(self, cls: type[Message], var: str) -> None:
        waiting = list(self.pending)
        with self.block(f"if {' and '.join(self.no_tags(cls, var))}:"):
            self.pending.append(("x", ""))
            self.flush()
        with self.block("else:"):
            self.pending = waiting
            self.flush()
            tags = self.fresh("tags")
            self.line(f"{tags} = dict({var}.unknown_tags or ())")
            for each in self.tagged(cls):
                self.tag(each, f"{var}.{each.name}", tags)
            self.line(f"{self.w}(tag_section({tags}))")

    def tag(self, known: Field, expression: str, tags: str) -> None:
        condition = f"not ({self.is_default(known, expression)})"
        nullable = known.is_nullable(self.version)
        if isinstance(known.wire, type) and not nullable:  # one of nothing but defaults is left out too
            condition = f"{expression} is not None and {expression} != {self.plain(known.wire)}"
        with self.block(f"if {condition}:"):
            out = self.fresh("out")
            outer, self.w = self.w, self.fresh("w")
            self.line(f"{out} = []")
            self.line(f"{self.w} = {out}.append")
            if nullable and isinstance(known.wire, type):
                self.nested(known.wire, expression, nullable, in_tag=True)
            else:
                self.value(known.wire, expression, nullable)
            self.flush()
            self.line(f'{tags}[{known.tag}] = b"".join({out})')
            self.w = outer

    def plain(self, cls: type[Message]) -> str:
        """The name of an object of nothing but defaults, to compare with."""
        name = f"plain_{cls.__name__}"
        self.names[name] = cls()
        return name

    def is_default(self, known: Field, expression: str) -> str:
        """The condition under which a tagged field is left out."""
        if known.is_new_list:
            return f"{expression} == []"
        if known.is_new_message:
            return f"{expression} == {self.plain(known.wire)}"  # type: ignore[arg-type]  # a class
        if known.default is None:
            return f"{expression} is None"
        return f"{expression} == {known.default!r}"
