"""Text that others have chosen, for a terminal: names of groups, clients and members, and what brokers answer."""

from __future__ import annotations

import re

# Control characters of both sets, what turns the direction of a line around, and what ends a line.
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text on one line, with `\\x1b` in place of what a terminal would obey."""
    return HIDDEN.sub(lambda found: repr(found[0])[1:-1], text)


def visible_json(text: str) -> str:
    """JSON that is not escaped to ASCII, with escapes in place of what a terminal would obey. Line ends stay."""
    return HIDDEN.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)
