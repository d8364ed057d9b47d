"""Where each field of a frame is: the nodes that a parse by construct found, whole or up to a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Node:
    """One field, list element or group of fields. `end` is -1 when the parse failed inside it."""

    __slots__ = ("children", "end", "kind", "name", "start", "value")

    def __init__(self, name: str, kind: str, start: int) -> None:
        self.name = name  # of a field; "[2]" for a list element
        self.kind = kind  # the wire type, "Array", or the name of the message's class
        self.start = start  # bytes, from the beginning of the frame after its size
        self.end = -1
        self.value: Any = None  # None too when the node has children or was not read to its end
        self.children: list[Node] = []

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Node]]:
        """(depth, node) of the nodes below this one, in the order of their bytes."""
        for child in self.children:
            yield depth, child
            yield from child.walk(depth + 1)


class Trace:
    """Collects the nodes of one parse. After a fault, `path` names the innermost node that was being read."""

    __slots__ = ("open", "root")

    def __init__(self, kind: str, start: int) -> None:
        self.root = Node("", kind, start)
        self.open = [self.root]

    def enter(self, name: str, kind: str, start: int) -> None:
        """Begin a node below the open one, at a byte position."""
        node = Node(name, kind, start)
        self.open[-1].children.append(node)
        self.open.append(node)

    def leave(self, value: Any, end: int) -> None:
        """Close the innermost open node at a byte position; only a node without children keeps the value."""
        node = self.open.pop()
        node.end = end
        if not node.children:
            node.value = value

    @property
    def path(self) -> str:
        """As one writes it: "topics[0].partitions[2].committed_offset"; "" at the top."""
        text = ""
        for node in self.open[1:]:
            text += node.name if not text or node.name.startswith("[") else f".{node.name}"
        return text
