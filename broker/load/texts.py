"""One file that fills a cluster, read: its value, and in which line each field is.

The ending of its name tells the language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.load import json_text, toml_text
from broker.load.problems import LoadError, Problem, field_name
from broker.load.text_errors import TextError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.load.problems import Path

ENDINGS: Final = (".json", ".toml", ".yaml", ".yml")
LONGEST_LINE: Final = 64 << 20  # of one record: larger than any that a broker takes, in base64 too
NO_YAML: Final = "YAML needs the extra yaml: pip install 'momus[yaml]'; JSON and TOML need nothing"


class Text:
    """A file that was read.

    name    as it is named in messages.
    value   what it says.
    index   finds the line of each field, when one is first asked for.
    """

    def __init__(self, name: str, value: Any, index: Callable[[], dict[Path, int]]) -> None:
        self.name = name
        self.value = value
        self._index = index
        self._lines: dict[Path, int] | None = None

    def line(self, path: Path) -> int:
        """The line of a field, or of what it would be in; counted from 1."""
        if self._lines is None:
            self._lines = self._index()
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def problem(self, path: Path, text: str) -> Problem:
        """What is wrong with a field."""
        return Problem(self.name, self.line(path), field_name(path), text)


def read_text(name: str, text: str) -> Text:
    """Errors: LoadError."""
    text = text.removeprefix("\ufeff")
    try:
        if name.endswith((".yaml", ".yml")):
            return _read_yaml(name, text)
        language = toml_text if name.endswith(".toml") else json_text
        return Text(name, language.parse(text), lambda: language.index(text))
    except TextError as error:
        raise LoadError([Problem(name, error.line, "", str(error))]) from None


def _read_yaml(name: str, text: str) -> Text:
    try:
        from broker.load.yaml_text import Node  # 15 ms, and the extra `yaml`
    except ImportError:
        raise TextError(0, NO_YAML) from None
    node = Node(text)
    return Text(name, node.value(), node.index)


def read_lines(name: str, text: str) -> Text:
    """A file with a JSON value in each line; empty lines are passed over. Errors: LoadError."""
    values: list[Any] = []
    lines: dict[Path, int] = {}
    problems = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if line.strip():
            lines[(len(values),)] = number
            if len(line) > LONGEST_LINE:
                problems.append(Problem(name, number, "", f"a line is longer than {LONGEST_LINE >> 20} MB"))
                continue
            try:
                values.append(json_text.parse(line))
            except TextError as error:
                problems.append(Problem(name, number, "", str(error)))
    if problems:
        raise LoadError(problems)
    return Text(name, values, lambda: lines)
