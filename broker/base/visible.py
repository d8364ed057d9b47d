"""Text that clients have chosen, on one line of a log or a report: nothing in it begins a line or steers a terminal."""

from __future__ import annotations

import re
from typing import Final

# Control characters of both sets, what turns the direction of a line around, and what ends a line.
_HIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text with escapes, as `\\n` or `\\x1b`, in place of such characters."""
    return _HIDDEN.sub(lambda found: repr(found[0])[1:-1], text)
