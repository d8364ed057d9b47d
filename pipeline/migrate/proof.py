"""Writes the proof of a migration piece by piece: no process holds the positions of groups, which may be millions."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.files import replaced_file
from pipeline.output_guard import marked_json

Write = Callable[[str], object]


@contextmanager
def opened(path: str | None) -> Iterator[Proof]:
    """A proof at a path, which is there once it is whole, or on the standard output."""
    if path is None:
        yield Proof(sys.stdout.write)
        return
    with replaced_file(path) as stream:
        yield Proof(lambda text: stream.write(text.encode()))


class Proof:
    """One JSON object: what is known of the records, then `groups`, one by one, then the rest, and `equal`."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._lead = ""

    def begin(self, content: dict[str, Any]) -> None:
        """Write all that comes before the groups."""
        self._write(marked_json("migrate", content).removesuffix("\n}"))
        self._write(',\n  "groups": [')

    def add(self, groups: Iterable[dict[str, Any]]) -> None:
        """Write entries of `groups`."""
        for each in groups:
            self._write(f"{self._lead}\n    {json.dumps(each)}")
            self._lead = ","

    def end(self, *, equal: bool, **more: Any) -> None:
        """Write the end, `more` before it."""
        self._write("\n  ]" if self._lead else "]")
        for name, content in {**more, "equal": equal}.items():
            self._write(f',\n  "{name}": {json.dumps(content, indent=2)}')
        self._write("\n}\n")
