"""Frames as trees of fields with their byte positions, and in words why a frame is malformed.

    tree = request_tree(frame)         frame: without its four size bytes
    tree.fault                         None, or what could not be read, where and why
    print(*text_lines(tree), sep="\\n")

The Struct that construct makes from a declared message does the reading, so that what is shown follows from the
declaration. Positions count from the first byte after the size.
"""

from __future__ import annotations

import io
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple

import construct
from construct import Construct

from protocol.api import ApiKey, flexible_since, is_declared, request_class, response_class
from protocol.construct_codec import API_VERSION_HEADER, REQUEST_HEADERS, RESPONSE_HEADERS
from protocol.header import response_header_version
from protocol.primitives import UnreadableError, struct
from protocol.trace import Node, Trace

EXPLAINED_BYTES = 1 << 14  # takes construct up to 60 ms, in which a broker serves no client
_SHOWN_BYTES = 16  # of a value of bytes


class Fault(NamedTuple):
    """Where a frame cannot be read on, and why."""

    label: str  # "OffsetCommitRequest v8", or "request" when the header does not say
    path: str
    position: int
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.label}: {self.path} at byte {self.position}: expected {self.expected}, {self.found}"


class Tree:
    """One frame: the nodes of its header and body, up to the fault if there is one."""

    __slots__ = ("body", "fault", "frame", "header", "label")

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.label = ""  # the message's class and version; "request" or "response" when the header does not say
        self.header = Trace("Header", 0)
        self.body = Trace("", 0)
        self.fault: Fault | None = None

    @property
    def bytes_behind(self) -> int:
        """How many bytes follow the message; brokers let them pass."""
        return 0 if self.fault else len(self.frame) - self.body.root.end

    def read(self, form: Construct, trace: Trace, prefix: str = "") -> Any:
        """Parse from where the trace begins. Returns None after setting `fault` when it cannot be read."""
        stream = io.BytesIO(self.frame)
        stream.seek(trace.root.start)
        try:
            found = form.parse_stream(stream, trace=trace)
        except UnreadableError as error:
            self.fault = Fault(self.label, prefix + trace.path, error.position, error.expected, error.found)
            return None
        trace.root.end = stream.tell()
        return found


def request_tree(frame: bytes | memoryview) -> Tree:
    """The tree of a request, which its header names."""
    tree = Tree(bytes(frame))
    tree.label = "request"
    try:
        api = API_VERSION_HEADER.parse(tree.frame)
    except construct.ConstructError:
        tree.read(REQUEST_HEADERS[0], tree.header, "header.")
        return tree
    known = _name(tree, api.api_key, api.api_version, "Request")
    form = REQUEST_HEADERS[api.api_version >= flexible_since(api.api_key)]
    if tree.read(form, tree.header, "header.") is not None:
        _read_body(tree, known, api.api_key, api.api_version, request_class)
    return tree


def response_tree(frame: bytes | memoryview, api_key: int, api_version: int) -> Tree:
    """The tree of a response; what it answers must be known."""
    tree = Tree(bytes(frame))
    known = _name(tree, api_key, api_version, "Response")
    form = RESPONSE_HEADERS[response_header_version(api_key, api_version)]
    if tree.read(form, tree.header, "header.") is not None:
        _read_body(tree, known, api_key, api_version, response_class)
    return tree


def explain_request(frame: bytes | memoryview) -> str | None:
    """Why a request cannot be read: message and version, field, byte, what was expected and found there.

    None: it can be read, or it is larger than EXPLAINED_BYTES.
    """
    if len(frame) > EXPLAINED_BYTES:
        return None
    fault = request_tree(frame).fault
    return None if fault is None else str(fault)


def _name(tree: Tree, api_key: int, api_version: int, what: str) -> str:
    """Set the label; answers what is wrong with key or version, in words, or "" when both are known."""
    if not is_declared(api_key):
        name = ApiKey(api_key).name if api_key in set(ApiKey) else f"api key {api_key}"
        tree.label = f"{name} {what.lower()} v{api_version}"
        return "api_key"
    cls = request_class(api_key)
    tree.label = f"{cls.__name__.removesuffix('Request')}{what} v{api_version}"
    return "" if cls.MIN_VERSION <= api_version <= cls.MAX_VERSION else "api_version"


def _read_body(tree: Tree, wrong: str, api_key: int, api_version: int, class_of: Any) -> None:
    tree.body = Trace("", tree.header.root.end)
    if wrong == "api_key":
        tree.fault = Fault(tree.label, "header.api_key", 0, "the key of a supported API", f"found {api_key}")
    elif wrong:
        cls = class_of(api_key)
        versions = f"{cls.MIN_VERSION} to {cls.MAX_VERSION}"
        tree.fault = Fault(tree.label, "header.api_version", 2, versions, f"found {api_version}")
    else:
        cls = class_of(api_key)
        tree.body.root.kind = cls.__name__
        tree.read(struct(cls, api_version), tree.body)


# -- shown


def text_lines(tree: Tree) -> Iterator[str]:
    """One line a field: its first byte, its name, its value; the fault last."""
    yield f"{tree.label}, {len(tree.frame)} bytes"
    width = len(str(len(tree.frame)))
    for trace in (tree.header, tree.body):
        if trace.root.children:
            yield f"{trace.root.start:>{width}}  {'header' if trace is tree.header else 'body'}"
        for depth, node in trace.root.walk(1):
            value = _text(node, tree.frame)
            yield f"{node.start:>{width}}  {'  ' * depth}{node.name}{' ' * bool(value)}{value}"
    if tree.bytes_behind:
        yield f"{tree.body.root.end:>{width}}  {tree.bytes_behind} bytes after the message"
    if tree.fault is not None:
        yield f"malformed: {tree.fault}"


def as_json(tree: Tree) -> dict[str, Any]:
    """The same as values that JSON can hold: bytes in hex, uuids as Kafka writes them."""
    fault = tree.fault
    return {
        "message": tree.label,
        "bytes": len(tree.frame),
        "header": [_json(node) for node in tree.header.root.children],
        "body": [_json(node) for node in tree.body.root.children],
        "bytes_behind": tree.bytes_behind,
        "fault": None if fault is None else {**fault._asdict(), "text": str(fault)},
    }


def _json(node: Node) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": node.name, "type": node.kind, "start": node.start}
    shown["end"] = node.end if node.end >= 0 else None
    if node.children:
        shown["fields"] = [_json(child) for child in node.children]
    elif isinstance(node.value, bytes):
        shown["value"] = _uuid(node.value) if node.kind == "Uuid" else node.value.hex()
    elif node.kind in _SHORT:
        shown["value"] = node.value
    elif node.value is None:
        shown["value"] = None
    else:
        shown["fields"] = []
    return shown


_SHORT = frozenset(["Bool", "Int8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "Float64", "String"])


def _uuid(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def _text(node: Node, frame: bytes) -> str:
    if node.end < 0:
        return "" if node.children else "?"
    if node.children:
        return f"({len(node.children)})" if node.kind == "Array" else ""
    value = node.value
    if value is None:
        return "null"
    if node.kind == "String":
        exact = value.encode() in frame[node.start : node.end]
        return repr(value) if exact else f"{value!r} (not UTF-8)"
    if node.kind == "Uuid":
        return _uuid(value)
    if isinstance(value, bytes):
        dots = "..." if len(value) > _SHOWN_BYTES else ""
        return f"{len(value)} bytes {value[:_SHOWN_BYTES].hex()}{dots}".rstrip()
    if node.kind == "Array":
        return "(0)"
    if node.name == "api_key" and value in set(ApiKey):
        return f"{value} {ApiKey(value).name}"
    return repr(value) if node.kind in _SHORT else "(none)"
