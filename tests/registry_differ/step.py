"""A step of a sequence: one request."""

from __future__ import annotations

from typing import Any, NamedTuple


class Step(NamedTuple):
    """One request; `body` None: it has none."""

    method: str
    path: str
    body: Any = None
