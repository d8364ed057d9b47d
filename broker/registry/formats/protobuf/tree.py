"""Reads a .proto into a tree of what is written there: names, types and options letter by letter, in their order.

protoc says what is wrong with a .proto, and what it means; it does not say how it was written, and it refuses what
Confluent's registry takes: `map_entry` (what generated classes send for a map) and options that nothing defines. So
those are kept in the tree, and `bare` has the text without them.
Source: the language's specification, "Protocol Buffers Language Specification"; what Confluent's registry leaves out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from broker.registry.formats.protobuf.nodes import Block, Member, Option, Ranges, Rpc, Text
from broker.registry.jobs import SchemaFaultError

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<word>[\w.+-]+)"""
    r"""|(?P<mark>[][{}()<>=;:,/])""",
    re.DOTALL,
)
ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
LABELS: Final = ("optional", "required", "repeated")


def tree_of_proto(text: str) -> tuple[Block, str]:
    """The tree of a .proto, and its text without what protoc is not to see. Errors: SchemaFaultError, with its line."""
    reader = _Reader(text)
    return reader.file(), reader.bare()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._at = 0
        self._hidden: list[tuple[int, int]] = []  # from and to

    def bare(self) -> str:
        """The text with spaces in the place of what is hidden; ends of lines stay."""
        found = self._text
        for first, last in self._hidden:
            found = found[:first] + re.sub(r"[^\n]", " ", found[first:last]) + found[last:]
        return found

    def _split(self) -> Any:
        """(text, from, to) of each token."""
        at = 0
        while at < len(self._text):
            match = TOKEN.match(self._text, at)
            if match is None:
                raise self._fault(at, f"unexpected {self._text[at]!r}")
            if match.lastgroup != "space":
                yield match.group(), match.start(), match.end()
            at = match.end()

    def _fault(self, at: int, what: str) -> SchemaFaultError:
        line = self._text.count("\n", 0, at) + 1
        return SchemaFaultError(f"line {line}:{at - self._text.rfind(chr(10), 0, at)}: {what}")

    # -- tokens

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        if self._at >= len(self._tokens):
            raise self._fault(len(self._text), "unexpected end")
        self._at += 1
        return str(self._tokens[self._at - 1][0])

    def _expect(self, mark: str) -> None:
        if (found := self._take()) != mark:
            raise self._fault(self._tokens[self._at - 1][1], f"expected {mark!r} but was {found!r}")

    def _accept(self, mark: str) -> bool:
        if self._peek() == mark:
            self._at += 1
            return True
        return False

    def _place(self) -> int:
        """Where the next token begins."""
        return self._tokens[self._at][1] if self._at < len(self._tokens) else len(self._text)

    def _end(self) -> int:
        """Where the last token has ended."""
        return int(self._tokens[self._at - 1][2])

    # -- statements

    def file(self) -> Block:
        """All of it."""
        found = Block("", "")
        while self._at < len(self._tokens):
            self._statement(found)
        return found

    def _block(self, kind: str, name: str) -> Block:
        found = Block(kind, name)
        self._expect("{")
        while not self._accept("}"):
            self._statement(found)
        return found

    def _statement(self, into: Block) -> None:
        if self._accept(";"):
            return
        word, following = self._peek(), self._tokens[self._at + 1][0] if self._at + 1 < len(self._tokens) else ""
        read = self._STATEMENTS.get(word) if following != "=" else None
        if word in ("syntax", "edition") and not into.kind:
            self._head(into)
        elif read is not None and (into.kind not in ("enum", "oneof") or word in ("option", "reserved", "group")):
            read(self, into)
        elif into.kind == "enum":
            name = self._take()
            self._expect("=")
            into.members.append(Member("", "", name, self._number(), self._bracket()))
            self._expect(";")
        else:
            self._field(into)

    def _head(self, into: Block) -> None:
        into.syntax = "edition " if self._take() == "edition" else ""
        self._expect("=")
        into.syntax += self._string()
        self._expect(";")

    def _package(self, into: Block) -> None:
        self._take()
        into.package = self._take()
        self._expect(";")

    def _import(self, into: Block) -> None:
        self._take()
        is_public = self._accept("public")
        if not is_public:
            _ = self._accept("weak") or self._accept("option")
        (into.public_imports if is_public else into.imports).append(self._string())
        self._expect(";")

    def _option_statement(self, into: Block) -> None:
        first = self._place()
        self._take()
        option = self._option("=")
        self._expect(";")
        into.options.append(option)
        if _is_hidden(option):
            self._hidden.append((first, self._end()))

    def _named_block(self, into: Block) -> None:
        kind = self._take()
        rows = {
            "message": into.messages,
            "enum": into.enums,
            "oneof": into.oneofs,
            "extend": into.extends,
            "service": into.services,
        }
        rows[kind].append(self._block(kind, self._take()))

    def _ranges(self, into: Block) -> None:
        kind = self._take()
        values: list[Any] = []
        while True:
            if self._peek()[:1] in ('"', "'"):
                values.append(Text(self._string()))
            else:
                first = self._number() if self._peek().lstrip("-")[:1].isdigit() else self._take()
                values.append((first, self._limit()) if self._accept("to") else first)
            if not self._accept(","):
                break
        (into.reserved if kind == "reserved" else into.extensions).append(Ranges(values, self._bracket()))
        self._expect(";")

    def _rpc(self, into: Block) -> None:
        self._take()
        name = self._take()
        types = []
        for before in ("", "returns"):
            if before:
                self._expect(before)
            self._expect("(")
            stream = self._peek() == "stream" and self._tokens[self._at + 1][0] != ")"
            types.append(("stream " if stream and self._take() else "") + self._take())
            self._expect(")")
        options = self._block("rpc", name).options if self._peek() == "{" else []
        if not options:
            self._accept(";")
        into.rpcs.append(Rpc(name, types[0], types[1], options))

    def _field(self, into: Block) -> None:
        label = self._take() if self._peek() in LABELS else ""
        kind = self._take()
        if kind == "group":
            name = self._take()
            self._expect("=")
            number, options = self._number(), self._bracket()
            into.groups.append(Member(label, kind, name, number, options, self._block(kind, name).members))
            return
        if kind == "map" and self._accept("<"):
            key = self._take()
            self._expect(",")
            kind = f"map<{key}, {self._take()}>"
            self._expect(">")
        name = self._take()
        self._expect("=")
        into.members.append(Member(label, kind, name, self._number(), self._bracket()))
        self._expect(";")

    def _limit(self) -> str:
        return self._take() if self._peek() == "max" else self._number()

    def _number(self) -> str:
        """A whole number in decimal, however it was written."""
        word = self._take()
        try:
            base = 8 if re.fullmatch(r"-?0[0-7]+", word) else 0
            return str(int(word, base))
        except ValueError:
            raise self._fault(self._tokens[self._at - 1][1], f"expected a number but was {word!r}") from None

    # -- options

    def _bracket(self) -> list[Option]:
        """The options in brackets; those that protoc is not to see are hidden, with the commas that they leave."""
        first = self._place()
        if not self._accept("["):
            return []
        found: list[Option] = []
        comma, is_any_kept = (0, 0), False
        while not self._accept("]"):
            place = self._place()
            option = self._option("=")
            found.append(option)
            is_kept = not _is_hidden(option)
            if not is_kept:
                self._hidden.append((place, self._end()))
            if len(found) > 1 and not (is_kept and is_any_kept):
                self._hidden.append(comma)
            is_any_kept = is_any_kept or is_kept
            comma = (self._place(), self._place() + 1)
            if not self._accept(",") and self._peek() != "]":
                self._expect("]")
        if not is_any_kept:
            self._hidden.append((first, self._end()))
        return found

    def _option(self, separator: str) -> Option:
        is_custom, is_extension = self._accept("("), False
        if not is_custom:
            is_extension = self._accept("[")
        name = self._take()
        while self._accept("/"):
            name += "/" + self._take()
        if is_custom:
            self._expect(")")
        elif is_extension:
            self._expect("]")
            name = f"[{name}]"
        parts = self._parts() if is_custom else []
        if separator == "=":
            self._expect("=")
        else:
            self._accept(":")  # may be left out before an object
        value = self._value()
        for part in reversed(parts):
            value = Option(part, False, value)
        return Option(name, is_custom, value)

    def _parts(self) -> list[str]:
        """The names after that of a custom option, which name a part of it; those of extensions in parentheses."""
        found = []
        while self._peek()[:1] == ".":
            found += [each for each in self._take().split(".") if each]
            if self._accept("("):
                found.append(f"({self._take()})")
                self._expect(")")
        return found

    def _value(self) -> Any:
        token = self._peek()
        if token in ("{", "<"):
            return self._map("}" if self._take() == "{" else ">")
        if token == "[":
            self._take()
            values = []
            while not self._accept("]"):
                values.append(self._value())
                self._accept(",")
            return values
        return Text(self._string()) if token[:1] in ('"', "'") else self._take()

    def _map(self, end: str) -> dict[str, Any]:
        """Values of one name are a list; those of a list are part of it."""
        found: dict[str, Any] = {}
        while not self._accept(end):
            option = self._option(":")
            name, value = option.name, option.value
            if name in found:
                before = found[name] if isinstance(found[name], list) else [found[name]]
                value = [*before, *(value if isinstance(value, list) else [value])]
            found[name] = value
            _ = self._accept(",") or self._accept(";")
        return found

    def _string(self) -> str:
        """Texts that follow each other are one."""
        found = ""
        while self._peek()[:1] in ('"', "'"):
            found += ESCAPE.sub(_letter, self._take()[1:-1])
        return found

    _STATEMENTS: Final[dict[str, Callable[[_Reader, Block], None]]] = {
        "package": _package,
        "import": _import,
        "option": _option_statement,
        **dict.fromkeys(("message", "enum", "oneof", "extend", "service"), _named_block),
        **dict.fromkeys(("reserved", "extensions"), _ranges),
        "rpc": _rpc,
        "group": _field,
    }


def _is_hidden(option: Option) -> bool:
    return option.is_custom or option.name in ("map_entry", "feature_support")


def _letter(match: re.Match[str]) -> str:
    octal, hexadecimal, letter = match.groups()
    if letter is not None:
        return LETTERS.get(letter, letter)
    return chr(int(octal, 8) if octal else int(hexadecimal, 16))
