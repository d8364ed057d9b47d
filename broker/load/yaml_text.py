"""YAML with the lines of its fields: needs the extra `yaml`. Errors: TextError: it is none, or has what is not read.

Behaviour: a plain scalar is a number, true, false or null where YAML 1.1 and 1.2 agree that it is, else a text, as are
           yes, on, 0o17, 12:30 and 2030-01-01. An alias is what its anchor is; there are no tags and no merge keys.

What a text makes is counted before it is made: aliases of aliases double with each line, and nodes within nodes take
the stack of the C library.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from broker.load.text_errors import MOST_DEPTH, MOST_DIGITS, TextError, too_deep

if TYPE_CHECKING:
    from broker.load.problems import Path

FREE_NODES: Final = 20_000  # that aliases may make of a short text
FREE_CHARS: Final = 4 << 20  # and the texts in them
TIMES: Final = 4  # as many characters as the text has
_WORDS: Final[dict[str, Any]] = {"": None, "~": None, **dict.fromkeys(("null", "Null", "NULL"))}
_WORDS.update(dict.fromkeys(("true", "True", "TRUE"), True))
_WORDS.update(dict.fromkeys(("false", "False", "FALSE"), False))
_WHOLE: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FRACTION: Final = re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?")
_TAGS: Final = {f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map")}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the library has no types
    """Decides nothing about scalars: `_scalar` does."""

    yaml_implicit_resolvers: Final[dict[str, Any]] = {}


class Node:
    """A text that was read, as the library has it."""

    def __init__(self, text: str) -> None:
        try:
            _count(text)
            self._root = yaml.compose(text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = 0 if mark is None else mark.line + 1
            raise TextError(where, f"this is not YAML: {error.problem or error.context}") from None
        except yaml.YAMLError as error:
            raise TextError(1, f"this is not YAML: {error}") from None

    def value(self) -> Any:
        """Errors: TextError."""
        return None if self._root is None else self._value(self._root)

    def index(self) -> dict[Path, int]:
        """The line of each field and item."""
        found: dict[Path, int] = {}
        if self._root is not None:
            self._walk(self._root, (), found)
        return found

    def _value(self, node: Any) -> Any:
        if node.tag not in _TAGS:
            raise TextError(node.start_mark.line + 1, f"the tag {node.tag} is not read here")
        if isinstance(node, yaml.ScalarNode):
            return node.value if node.style else _scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each) for each in node.value]
        made: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise TextError(key.start_mark.line + 1, "a key is a text")
            if key.value in made:
                raise TextError(key.start_mark.line + 1, f'"{key.value}" is there twice')
            made[key.value] = self._value(value)
        return made

    def _walk(self, node: Any, path: Path, found: dict[Path, int]) -> None:
        inside: Any = ()
        if isinstance(node, yaml.SequenceNode):
            inside = ((number, each, each) for number, each in enumerate(node.value))
        elif isinstance(node, yaml.MappingNode):
            inside = ((key.value, key, value) for key, value in node.value)
        for step, mark, value in inside:
            found[(*path, step)] = mark.start_mark.line + 1
            self._walk(value, (*path, step), found)


def _count(text: str) -> None:
    """Refuse a text that makes much more than it has. Errors: TextError, yaml.YAMLError."""
    most_nodes, most_chars = max(FREE_NODES, len(text)), max(FREE_CHARS, TIMES * len(text))
    anchors: dict[str, tuple[int, int]] = {}  # -> nodes and characters of what it names
    within: list[tuple[str | None, int, int]] = []  # anchors that are open, and what had been made before each
    nodes = chars = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionStartEvent):
            within.append((event.anchor, nodes, chars))
            nodes += 1
            if len(within) > MOST_DEPTH:
                raise too_deep(line)
        elif isinstance(event, yaml.CollectionEndEvent):
            name, nodes_before, chars_before = within.pop()
            if name is not None:
                anchors[name] = (nodes - nodes_before, chars - chars_before)
        elif isinstance(event, yaml.ScalarEvent):
            nodes, chars = nodes + 1, chars + len(event.value)
            if event.anchor is not None:
                anchors[event.anchor] = (1, len(event.value))
        elif isinstance(event, yaml.AliasEvent):
            if any(name == event.anchor for name, _, _ in within):
                raise TextError(line, f"the alias {event.anchor:.50} is within what it stands for")
            made = anchors.get(event.anchor, (0, 0))  # 0: there is none, which the library says in its words
            nodes, chars = nodes + made[0], chars + made[1]
            if nodes > most_nodes or chars > most_chars:
                raise TextError(line, "its aliases make much more than the text has")


def _scalar(node: Any) -> Any:
    """The value of a text without quotes. Errors: TextError."""
    text = node.value
    if text in _WORDS:
        return _WORDS[text]
    line = node.start_mark.line + 1
    if _WHOLE.fullmatch(text):
        if len(text) > MOST_DIGITS:
            raise TextError(line, f"a number has at most {MOST_DIGITS} digits")
        return int(text)
    if not _FRACTION.fullmatch(text):
        return text
    found = float(text)
    if math.isinf(found):
        raise TextError(line, f"{text:.50} is a larger number than any that is read here")
    return found
