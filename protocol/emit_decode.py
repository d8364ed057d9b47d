"""Writes the decode function of one version of a message.

Neighbouring fixed-size fields, with the length byte of what follows them or the count of tagged fields, are read
by one cached struct call. An array whose elements have a fixed stride while their one string is empty is read as a
run; the first element that is different sends the rest down the general path. Every length is compared with what
is left before anything is made of it, so a frame costs memory in proportion to its own size, whatever it claims.
"""

from __future__ import annotations

import struct
from contextlib import nullcontext
from typing import Any

from protocol import codec_support
from protocol.declare import Field, Message, WireType
from protocol.emit import Emitter
from protocol.wire import Array, Bytes, String, Wire

_RUN_MIN_COUNT = 2  # below, setting up the run costs more than it saves


def decoder(cls: type[Message], version: int) -> tuple[str, dict[str, Any]]:
    """Source of `decode(buf, pos=0)`, and the names it needs."""
    emit = _Decoder(cls, version)
    with emit.block("def decode(buf, pos=0):"):
        if not emit.has_records:
            # bytes slice and index faster than a memoryview, and a frame without records is small
            with emit.block("if buf.__class__ is not bytes:"):
                emit.line("buf = bytes(buf)")
        emit.line("size = len(buf)")
        with emit.block("try:"):
            emit.message(cls, "o", cls.__name__)
            emit.flush()
            emit.line("return o, pos")
        with emit.block("except (IndexError, StructError) as error:"):
            emit.line("raise bad.short(error, size) from None")
    emit.names["bad"] = codec_support.DecodeErrors(f"{cls.__name__} v{version}", emit.paths)
    return emit.source(), emit.names


class _Decoder(Emitter):
    def __init__(self, cls: type[Message], version: int) -> None:
        super().__init__(cls, version)
        self.pending: list[tuple[str, str]] = []  # struct letter, target
        self.names |= {
            "StructError": struct.error,
            "new": object.__new__,
            "read_tags": codec_support.read_tags,
            "read_uvarint": codec_support.read_uvarint,
            "unpack_from": struct.unpack_from,
        }

    def flush(self, path: str = "") -> None:
        """Read the fixed-size values that wait, by one call."""
        if not self.pending:
            return
        letters = "".join([letter for letter, _ in self.pending])
        targets = ", ".join([target for _, target in self.pending])
        path = path or self.pending[-1][1]
        if letters == "B":
            self.line(f"{targets} = buf[pos]", path)
        elif len(self.pending) == 1:
            self.line(f"{targets} = {self.method('unpack_from', letters)}(buf, pos)[0]", path)
        else:
            self.line(f"{targets} = {self.method('unpack_from', letters)}(buf, pos)", path)
        self.line(f"pos += {struct.calcsize('>' + letters)}")
        self.pending = []

    def message(self, cls: type[Message], var: str, path: str, create: bool = True) -> None:
        """Create an object and read its fields; the last ones may still wait for a flush."""
        self.names[cls.__name__] = cls
        if create:
            self.line(f"{var} = new({cls.__name__})")
        self.defaults(cls, var)
        for each in self.present(cls):
            nullable = each.is_nullable(self.version)
            self.value(each.wire, f"{var}.{each.name}", nullable, _below(path, each))
        if self.flexible:
            self.tags(cls, var, path)

    def defaults(self, cls: type[Message], var: str) -> None:
        """Set what this version lacks, and what is tagged; equal values share one statement."""
        constants: dict[str, list[str]] = {"None": [f"{var}.unknown_tags"]}
        present = self.present(cls)
        for each in cls.FIELDS:
            if each in present:
                continue
            if each.is_new_message:
                self.names[each.wire.__name__] = each.wire  # type: ignore[union-attr]  # a class
                self.line(f"{var}.{each.name} = {each.wire.__name__}()")  # type: ignore[union-attr]  # a class
            elif each.is_new_list:
                self.line(f"{var}.{each.name} = []")
            else:
                constants.setdefault(repr(each.default), []).append(f"{var}.{each.name}")
        for value, targets in constants.items():
            self.line(f"{' = '.join(targets)} = {value}")

    def value(self, kind: WireType, target: str, nullable: bool, path: str) -> None:
        """Read one value into a target."""
        if isinstance(kind, Array):
            self.array(kind, target, nullable, path)
        elif not isinstance(kind, Wire):
            self.nested(kind, target, nullable, path)
        elif kind.letter:
            self.pending.append((kind.letter, target))
        else:
            self.sized(kind, target, nullable, path)

    def nested(self, cls: type[Message], target: str, nullable: bool, path: str, in_tag: bool = False) -> None:
        """Read a message; null is a byte below 0, but within a tagged field, of all places, a 0."""
        var = self.fresh("o")
        if not nullable:
            self.names[cls.__name__] = cls
            self.line(f"{target} = {var} = new({cls.__name__})")
            self.message(cls, var, path, create=False)
            return
        there = self.fresh("there")
        if in_tag:
            self.line(f"{there}, pos = read_uvarint(buf, pos)", path)
        else:
            self.pending.append(("b", there))
            self.flush(path)
        with self.block(f"if {there} < {int(in_tag)}:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            self.names[cls.__name__] = cls
            self.line(f"{target} = {var} = new({cls.__name__})")
            self.message(cls, var, path, create=False)
            self.flush(path)

    def sized(self, kind: Wire, target: str, nullable: bool, path: str) -> None:
        """Read a string, bytes or records after their length."""
        n = self.fresh("n")
        one = 1 if self.flexible else 0  # a compact length counts from 1
        self.pending.append((self.length_letter(kind), n))
        self.flush(path)
        empty = '""' if kind is String else 'b""'
        if self.flexible:
            with self.block(f"if {n} > 127:"):
                self.line(f"{n}, pos = read_uvarint(buf, pos - 1)", path)
                if kind is String:
                    with self.block(f"if {n} > {codec_support.STRING_MAX_BYTES + 1}:"):
                        self.line(f"raise bad.long({path!r}, {n} - 1)")
        with self.block(f"if {n} > {one}:"):
            self.line(f"end = pos + {n}" + (" - 1" if self.flexible else ""))
            with self.block("if end > size:"):
                self.line(f"raise bad.cut({path!r}, end - pos, size - pos)")
            self.line(f"{target} = {self.slice_of(kind)}")
            self.line("pos = end")
        with self.block(f"elif {n} == {one}:"):
            self.line(f"{target} = {empty}")
        with self.block("else:"):
            self.line(f"{target} = None" if nullable else f"raise bad.null({path!r})")

    def slice_of(self, kind: Wire) -> str:
        if kind is String:
            if self.has_records:
                return 'str(buf[pos:end], "utf-8", "replace")'
            return 'buf[pos:end].decode("utf-8", "replace")'
        return "bytes(buf[pos:end])" if kind is Bytes and self.has_records else "buf[pos:end]"

    def array(self, kind: Array[Any], target: str, nullable: bool, path: str) -> None:
        """Read a count and the elements. A usual one pays nothing for Kafka's limit: a compact count is held against it
        when it is long, another is read as unsigned, so that one comparison finds it negative or too large."""
        n = self.fresh("n")
        self.pending.append((self.length_letter(kind) if self.flexible else "I", n))
        self.flush(path)
        least = max(self.min_size(kind.element), 1)
        too_many = f"{n} > size - pos" if least == 1 else f"{n} * {least} > size - pos"
        wrong = f"raise bad.count({path!r}, {n}, size - pos)"
        if self.flexible:
            with self.block(f"if {n} > 127:"):
                self.line(f"{n}, pos = read_uvarint(buf, pos - 1)", path)
                with self.block(f"if {n} > {codec_support.MOST_ELEMENTS + 1}:"):
                    self.line(f"raise bad.count({path!r}, {n} - 1, size - pos)")
            self.line(f"{n} -= 1")
            if nullable:
                with self.block(f"if {n} < 0:"):
                    self.line(f"{target} = None")
            with self.block(f"elif {too_many}:" if nullable else f"if {n} < 0 or {too_many}:"):
                self.line(wrong)
        else:
            with self.block(f"if {too_many} or {n} > {codec_support.MOST_ELEMENTS}:"):
                if nullable:
                    with self.block(f"if {n} <= {codec_support.INT_MAX}:"):
                        self.line(wrong)
                    self.line(f"{target} = None")
                else:
                    self.line(wrong)
        with self.block("else:") if nullable else nullcontext():
            self.elements(kind.element, target, n, path)

    def elements(self, kind: Wire | type[Message], target: str, n: str, path: str) -> None:
        if isinstance(kind, Wire) and kind.letter:
            self.fixed_elements(kind, target, n)
            return
        items, add = self.fresh("items"), self.fresh("add")
        self.line(f"{target} = {items} = []")
        self.line(f"{add} = {items}.append")
        if isinstance(kind, type) and self.is_run(kind):
            self.run(kind, items, add, n, path)
        with self.block(f"for _ in range({n}):"):
            var = self.fresh("o")
            if isinstance(kind, type):
                self.message(kind, var, path)
            else:
                self.value(kind, var, False, path)
            self.flush(path)
            self.line(f"{add}({var})")

    def fixed_elements(self, kind: Wire, target: str, n: str) -> None:
        self.line(f"end = pos + {n} * {kind.size}")
        if len(kind.letter) == 1:
            one = self.method("unpack_from", kind.letter)  # most have one element or none: a format needs no cache then
            with self.block(f"if {n} < 2:"):
                self.line(f"{target} = list({one}(buf, pos)) if {n} else []")
            with self.block("else:"):
                self.line(f'{target} = list(unpack_from(f">{{{n}}}{kind.letter}", buf, pos))')
        else:
            self.line(f"{target} = [e for (e,) in {self.method('iter_unpack', kind.letter)}(buf[pos:end])]")
        self.line("pos = end")

    def run(self, cls: type[Message], items: str, add: str, n: str, path: str) -> None:
        """Read elements while their string is empty and they have no tags."""
        self.names[cls.__name__] = cls
        letters = ""
        columns: list[str] = []
        odd: list[str] = []
        stores: list[str] = []
        for each in self.present(cls):
            name = f"v{len(columns)}"
            columns.append(name)
            if each.wire is not String:
                letters += each.wire.letter  # type: ignore[union-attr]  # a fixed-size Wire
                stores.append(f"e.{each.name} = {name}")
                continue
            letters += self.length_letter(String)
            one = 1 if self.flexible else 0
            if each.is_nullable(self.version):
                odd.append(f"{name} > {one}")
                stores.append(f'e.{each.name} = None if {name} < {one} else ""')
            else:
                odd.append(f"{name} != {one}")
                stores.append(f'e.{each.name} = ""')
        if self.flexible:
            columns.append("tags")
            letters += "B"
            odd.append("tags")
        stride = struct.calcsize(">" + letters)
        if not letters:
            return
        with self.block(f"if {n} > {_RUN_MIN_COUNT}:"):
            rows = f"{self.method('iter_unpack', letters)}(buf[pos:pos + {n} * {stride}])"
            comma = "," if len(columns) == 1 else ""
            with self.block(f"for {', '.join(columns)}{comma} in {rows}:"):
                if odd:
                    with self.block(f"if {' or '.join(odd)}:"):
                        self.line("break")
                self.line(f"e = new({cls.__name__})")
                for store in stores:
                    self.line(store)
                self.defaults(cls, "e")
                self.line(f"{add}(e)")
            self.line(f"pos += len({items}) * {stride}")
            self.line(f"{n} -= len({items})")

    def tags(self, cls: type[Message], var: str, path: str) -> None:
        count = self.fresh("tags")
        self.pending.append(("B", count))
        self.flush(f"{path} (tagged fields)")
        if not self.tagged(cls):
            with self.block(f"if {count}:"):
                self.line(f"{var}.unknown_tags, pos = read_tags(buf, pos - 1, bad, {path!r})", path)
            return
        with self.block(f"if {count}:"):
            with self.block(f"if {count} > 127:"):
                self.line(f"{count}, pos = read_uvarint(buf, pos - 1)", path)
                with self.block(f"if {count} > {codec_support.MOST_TAGS}:"):
                    self.line(f"raise bad.tags({path!r}, {count})")
            with self.block(f"for _ in range({count}):"):
                self.tag(cls, var, path)

    def tag(self, cls: type[Message], var: str, path: str) -> None:
        tag, stop = self.fresh("tag"), self.fresh("stop")
        self.line(f"{tag}, pos = read_uvarint(buf, pos)", path)
        self.line(f"{stop}, pos = read_uvarint(buf, pos)", path)
        self.line(f"{stop} += pos")
        with self.block(f"if {stop} > size:"):
            self.line(f'raise bad.cut(f"{path} (tag {{{tag}}})", {stop} - pos, size - pos)')
        word = "if"
        for each in self.tagged(cls):
            below = _below(path, each)
            with self.block(f"{word} {tag} == {each.tag}:"):
                nullable = each.is_nullable(self.version)
                if nullable and isinstance(each.wire, type):
                    self.nested(each.wire, f"{var}.{each.name}", nullable, below, in_tag=True)
                else:
                    self.value(each.wire, f"{var}.{each.name}", nullable, below)
                self.flush(below)
                with self.block(f"if pos != {stop}:"):
                    self.line(f"raise bad.tag({below!r})")
            word = "elif"
        with self.block("else:"):
            with self.block(f"if {var}.unknown_tags is None:"):
                self.line(f"{var}.unknown_tags = {{}}")
            self.line(f"{var}.unknown_tags[{tag}] = bytes(buf[pos:{stop}])")
            self.line(f"pos = {stop}")


def _below(path: str, field: Field) -> str:
    """The field's own path; the message's name is in the error already."""
    return field.name if path[:1].isupper() else f"{path}.{field.name}"
