"""Refuses a regular expression of a JSON Schema that does not compile, as Confluent's registry does, which asks Java's.

Python's is asked, after what only Java's knows is replaced: \\p{L}, (?<name>a), \\Qa\\E. What Python alone refuses (a
look-behind of any width, flags within the text) is let through.
"""

from __future__ import annotations

import re
import warnings
from typing import Any, Final

from broker.registry.jobs import SchemaFaultError

ONLY_JAVA: Final = re.compile(
    r"\\Q.*?(?:\\E|$)|\\[pP](?:\{[^{}]*\}|[A-Z])|\\x\{[0-9a-fA-F]+\}|\\c.|\\[hHRvVXGzZeE]", re.DOTALL
)
NAMED: Final = re.compile(r"\(\?<(?=[a-zA-Z])")
NAMED_AGAIN: Final = re.compile(r"\\k<([a-zA-Z]\w*)>")
NO_REPEAT: Final = re.compile(r"\{(?!\d+(?:,\d*)?\})")
PAIRS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
ONLY_PYTHONS: Final = ("look-behind", "global flags", "unknown extension ?", "multiple repeat")
VALUES: Final = frozenset(("const", "enum", "default", "examples"))  # what they hold is no schema


def check_patterns(tree: Any) -> None:
    """Errors: SchemaFaultError: one does not compile."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left += node
        if not isinstance(node, dict):
            continue
        left += [value for key, value in node.items() if key not in VALUES]
        if isinstance(node.get("pattern"), str):
            _check(node["pattern"])
        if isinstance(node.get("patternProperties"), dict):
            for pattern in node["patternProperties"]:
                _check(pattern)


def _check(pattern: str) -> None:
    given = ONLY_JAVA.sub("-", pattern)
    if "(?P" in given:
        raise SchemaFaultError(f"the pattern {pattern:.200} does not compile: (?P is Python's")
    if NO_REPEAT.search(PAIRS.sub("-", given)):
        raise SchemaFaultError(f"the pattern {pattern:.200} does not compile: an open brace that repeats nothing")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(NAMED_AGAIN.sub(r"(?P=\1)", NAMED.sub("(?P<", given)))
    except (re.error, OverflowError) as error:
        if not str(error).startswith(ONLY_PYTHONS):
            raise SchemaFaultError(f"the pattern {pattern:.200} does not compile: {error}") from None
