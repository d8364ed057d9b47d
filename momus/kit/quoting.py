"""Names in the paths of the control plane: a group may be called "a/b", "a?b" or "a%62"."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A name as one word of a path."""
    from urllib.parse import quote  # 2 ms, and there already where a control endpoint is

    return quote(name, safe="")
