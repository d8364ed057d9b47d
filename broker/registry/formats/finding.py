"""A difference between two schemas, before it is told which of both is the new one."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """A difference before it is told which of both schemas is the new one.

    text   with {reader} and {writer} where Confluent says "new" and "old".
    """

    kind: str
    path: str
    text: str
