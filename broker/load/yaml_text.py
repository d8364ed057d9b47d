"""YAML with the lines of its fields: needs the extra `yaml`. Errors: TextError: it is none, or has what is not read.

Behaviour: a plain scalar is a number, true, false or null where YAML 1.1 and 1.2 agree that it is, else a text, as are
           yes, on, 0o17, 12:30 and 2030-01-01. An alias is what its anchor is; there are no tags and no merge keys.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from broker.load.text_errors import TextError

if TYPE_CHECKING:
    from broker.load.problems import Path

MOST_NODES: Final = 20_000_000  # aliases of aliases would make more of a few lines
MOST_DEPTH: Final = 200
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
            self._root = yaml.compose(text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = 0 if mark is None else mark.line + 1
            raise TextError(where, f"this is not YAML: {error.problem or error.context}") from None
        except (yaml.YAMLError, RecursionError) as error:
            raise TextError(1, f"this is not YAML: {error}") from None
        self._left = MOST_NODES

    def value(self) -> Any:
        """Errors: TextError."""
        return None if self._root is None else self._value(self._root, 0)

    def index(self) -> dict[Path, int]:
        """The line of each field and item."""
        found: dict[Path, int] = {}
        if self._root is not None:
            self._walk(self._root, (), found)
        return found

    def _value(self, node: Any, depth: int) -> Any:
        self._left -= 1
        line = node.start_mark.line + 1
        if self._left < 0 or depth > MOST_DEPTH:
            raise TextError(line, "this is nested too deep, or has too many aliases")
        if node.tag not in _TAGS:
            raise TextError(line, f"the tag {node.tag} is not read here")
        if isinstance(node, yaml.ScalarNode):
            return node.value if node.style else _scalar(node.value)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each, depth + 1) for each in node.value]
        made: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise TextError(key.start_mark.line + 1, "a key is a text")
            if key.value in made:
                raise TextError(key.start_mark.line + 1, f'"{key.value}" is there twice')
            made[key.value] = self._value(value, depth + 1)
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


def _scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text) and len(text) <= 4300:
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text
