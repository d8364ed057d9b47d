"""X-Request-ID: what a client names its request by comes back in the response, and a request without one is given one.

Source: Confluent's RequestHeaderHandler.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Final

from storage.files.env import SystemRng

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELD: Final = "X-Request-ID"
ECHOED: Final = re.compile(r"[!-~](?:[ -~]{0,198}[!-~])?")  # another one could not be sent back as it came
SHAPE: Final = re.compile(r"(.{8})(.{4})(.{4})(.{4})")


class RequestIds:
    """The ids of one registry: those that it makes differ in their last 12 digits, which count."""

    def __init__(self) -> None:
        drawn = SystemRng().uuid_bytes().hex()[:20]
        self._prefix = SHAPE.sub(r"\1-\2-\3-\4-", drawn)
        self._numbers = count(1)

    def made(self) -> str:
        """A new one, in the form of a UUID."""
        return f"{self._prefix}{next(self._numbers) & 0xFFFFFFFFFFFF:012x}"

    def fields(self, given: Mapping[str, str]) -> dict[str, str]:
        """The field of a response; `given`: those of its request, by their names in lower case."""
        return {FIELD: given[FIELD.lower()] if self.is_named(given) else self.made()}

    def is_named(self, given: Mapping[str, str]) -> bool:
        """Whether a request has one that is sent back."""
        return ECHOED.fullmatch(given.get(FIELD.lower(), "")) is not None
