"""What clients did: operations with when they were asked for and answered. Pure but for reading and writing lines.

Each worker is a process with a file of its own, and writes a line before it asks and one when it knows the outcome. All
of them read the machine's monotonic clock. An operation without a second line may have happened, or happen later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NEVER = 1 << 62


@dataclass
class Op:
    """One operation. is_done: None while its outcome is unknown; False: it has not happened and will not."""

    kind: str
    worker: str
    asked: int
    answered: int = NEVER
    is_done: bool | None = None
    facts: dict[str, Any] = field(default_factory=dict)


class Journal:
    """The file of one worker. `now` tells nanoseconds."""

    def __init__(self, path: Path, worker: str, now: Any) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._worker = worker
        self._now = now
        self._number = 0

    def ask(self, kind: str, **facts: Any) -> int:
        """About to ask for something. Returns its number."""
        self._number += 1
        self._write({"n": self._number, "kind": kind, "worker": self._worker, "t": self._now(), "facts": facts})
        return self._number

    def end(self, number: int, is_done: bool | None, **facts: Any) -> None:
        """It is known what became of it; None: its outcome stays unknown."""
        self._write({"n": number, "t": self._now(), "done": is_done, "facts": facts})

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._fd, json.dumps(line).encode() + b"\n")


def read(paths: Iterable[Path]) -> list[Op]:
    """All operations in the order in which they were asked for. A last line that is cut short is left out."""
    found: list[Op] = []
    for path in paths:
        by_number: dict[int, Op] = {}
        for line in path.read_bytes().split(b"\n")[:-1]:
            told = json.loads(line)
            if "kind" in told:
                op = by_number[told["n"]] = Op(told["kind"], told["worker"], told["t"], facts=told["facts"])
                found.append(op)
            else:
                op = by_number[told["n"]]
                op.is_done = told["done"]
                op.facts.update(told["facts"])
                if told["done"] is not None:
                    op.answered = told["t"]
    return sorted(found, key=lambda op: op.asked)
