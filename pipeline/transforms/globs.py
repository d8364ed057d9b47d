"""Names that match a glob, in an expression that every engine's regular expressions understand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.engine import F

if TYPE_CHECKING:
    from pyspark.sql import Column

_PART: Final = re.compile(r"\[!?[^\]]+\]|.", re.DOTALL)


def expression(pattern: str) -> str:
    """A glob (`*`, `?`, `[abc]`, `[!abc]`) as a regular expression for a whole name."""
    made = []
    for part in _PART.findall(pattern):
        if part == "*":
            made.append(".*")
        elif part == "?":
            made.append(".")
        elif len(part) > 1:
            inside = part[1:-1].replace("\\", "\\\\")
            made.append(f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside}]")
        else:
            made.append(re.escape(part))
    return f"^(?s:{''.join(made)})$"


def matches(column: str, pattern: str) -> Column:
    """Whether a column matches a glob."""
    return F.col(column).rlike(expression(pattern))
