"""A malformed frame is explained by construct: an existing field, a byte of the frame, what was expected and found."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

import pytest
from budget import IS_DEEP
from cases import each_case
from codec_values import MESSAGES, sample

from protocol import tree
from protocol.api import is_declared
from protocol.codegen import codec
from protocol.declare import Message
from protocol.errors import MalformedError
from protocol.header import decode_request_header, encode_request_header, encode_response_header
from protocol.messages.fetch import FetchRequest
from protocol.messages.group_admin import DescribeGroupsRequest
from protocol.messages.offsets import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.wire import Array

_REQUESTS = [each for each in MESSAGES if each.__name__.endswith("Request") and is_declared(each.API_KEY)]
_RESPONSES = [each for each in MESSAGES if each.__name__.endswith("Response") and is_declared(each.API_KEY)]
_HEADER_FIELDS = {"api_key", "api_version", "correlation_id", "client_id", "tagged_fields"}


def _layouts(cls: type[Message]) -> list[int]:
    """The first version, the first flexible one and the last."""
    return sorted({cls.MIN_VERSION, max(cls.MIN_VERSION, min(cls.FLEXIBLE_SINCE, cls.MAX_VERSION)), cls.MAX_VERSION})


def _frame(request: Message, version: int) -> bytes:
    return encode_request_header(request.API_KEY, version, 7, "test") + codec(type(request), version).encode(request)


def _reads(cls: type[Message], version: int, frame: bytes) -> bool:
    try:
        _, at = decode_request_header(frame)
        codec(cls, version).decode(frame, at)
    except MalformedError:
        return False
    return True


def _is_a_field(cls: type[Message], path: str) -> bool:
    """Whether a path leads to a declared field, a list element, or the tagged fields of a message."""
    if path.startswith("header."):
        return path.removeprefix("header.").split(".")[0] in _HEADER_FIELDS
    kind: object = cls
    for part in re.findall(r"[^.\[\]]+|\[\d+\]", path):
        if part.startswith("["):
            if not isinstance(kind, Array):
                return False
            kind = kind.element
        elif part == "tagged_fields" or part.startswith("tag "):
            if not isinstance(kind, type):
                return False
        else:
            fields = {each.name: each.wire for each in getattr(kind, "FIELDS", ())}
            if part not in fields:
                return False
            kind = fields[part]
    return bool(path)


def _cuts(frame: bytes) -> Iterable[int]:
    """Where to cut a frame: all bytes of a short one, about a hundred of a long one in the gate."""
    return range(len(frame)) if IS_DEEP else range(0, len(frame), 1 + len(frame) // 100)


def _check(cls: type[Message], version: int, found: tree.Tree) -> None:
    fault = found.fault
    assert fault is not None
    assert fault.label in (f"{cls.__name__} v{version}", "request")
    assert _is_a_field(cls, fault.path), str(fault)
    assert 0 <= fault.position <= len(found.frame), str(fault)
    assert fault.expected
    assert fault.found


@pytest.mark.heavy
@each_case("cls", _REQUESTS, ids=[each.__name__ for each in _REQUESTS])
def test_request_cut_at_every_byte_is_explained(cls: type[Message]) -> None:
    rng = random.Random(4)
    for version in _layouts(cls):
        frame = _frame(sample(cls, version, rng), version)
        assert tree.request_tree(frame).fault is None
        for cut in _cuts(frame):
            found = tree.request_tree(frame[:cut])
            _check(cls, version, found)
            assert "left" in str(found.fault)


@pytest.mark.heavy
@each_case("cls", _RESPONSES, ids=[each.__name__ for each in _RESPONSES])
def test_response_cut_at_every_byte_is_explained(cls: type[Message]) -> None:
    rng = random.Random(5)
    for version in _layouts(cls):
        frame = encode_response_header(cls.API_KEY, version, 7) + codec(cls, version).encode(sample(cls, version, rng))
        assert tree.response_tree(frame, cls.API_KEY, version).fault is None
        for cut in _cuts(frame):
            _check(cls, version, tree.response_tree(frame[:cut], cls.API_KEY, version))


@pytest.mark.heavy
@each_case("cls", _REQUESTS, ids=[each.__name__ for each in _REQUESTS])
def test_request_with_changed_bytes_is_explained_where_the_codec_refuses_it(cls: type[Message]) -> None:
    rng = random.Random(6)
    for version in _layouts(cls):
        frame = _frame(sample(cls, version, rng), version)
        for _ in range(20):
            changed = bytearray(frame)
            at = rng.randrange(4, len(frame))
            lie = rng.choice((b"\xff\xff\xff\xff\x7f", b"\x7f\xff\xff\xff", b"\xff\xfe", b"\xff", b"\x80", b"\x00"))
            changed[at : at + len(lie)] = lie
            found = tree.request_tree(bytes(changed))
            assert (found.fault is None) == _reads(cls, version, bytes(changed))
            if found.fault is not None:
                _check(cls, version, found)


def _commit() -> OffsetCommitRequest:
    rows = [OffsetCommitRequestPartition(partition_index=at, committed_offset=5) for at in range(3)]
    topic = OffsetCommitRequestTopic(name="orders", partitions=rows)
    return OffsetCommitRequest(group_id="g", member_id="m", topics=[topic])


HEADER_BYTES = 15  # "test" as the client, and no tags


def test_fault_in_a_nested_field_names_its_indexes_and_byte() -> None:
    frame = _frame(_commit(), 8)
    at = frame.index(b"orders") + len("orders") + 1 + 2 * 18 + 4
    assert tree.explain_request(frame[: at + 3]) == (
        f"OffsetCommitRequest v8: topics[0].partitions[2].committed_offset at byte {at}: expected 8 bytes, 3 are left"
    )


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (b"\x65", f"group_id at byte {HEADER_BYTES + 1}: expected 100 bytes of a string, "),
        (b"\x00", f"group_id at byte {HEADER_BYTES}: expected a string, found null (length -1)"),
        (b"\x81\x80\x08", f"group_id at byte {HEADER_BYTES}: expected a string of at most 32767 bytes, found length"),
        (b"\xff\xff\xff\xff\x7f", f"group_id at byte {HEADER_BYTES}: expected a varint of at most 31 bits, found"),
        (b"\xff\xff\xff\xff\xff\xff", f"group_id at byte {HEADER_BYTES}: expected a varint of at most 31 bits, found"),
    ],
)
def test_wrong_length_of_a_string_is_explained(new: bytes, words: str) -> None:
    frame = _frame(_commit(), 8)
    changed = frame[:HEADER_BYTES] + new + frame[HEADER_BYTES + 1 :]
    assert words in str(tree.explain_request(changed))


@pytest.mark.parametrize(
    ("version", "count", "words"),
    [
        (8, b"\x00", "expected an array, found null (count -1)"),
        (8, b"\xff\xff\x7f", "elements, as many bytes are left, found count 2097150"),
        (2, b"\xff\xff\xff\xff", "expected an array, found null (count -1)"),
        (2, b"\x80\x00\x00\x00", "expected an array, found null (count -2147483648)"),
        (2, b"\x7f\xff\xff\xff", "elements, as many bytes are left, found count 2147483647"),
    ],
)
def test_wrong_count_of_an_array_is_explained(version: int, count: bytes, words: str) -> None:
    frame = _frame(_commit(), version)
    at = frame.index(b"orders") - (2 if version == 8 else 6)
    changed = frame[:at] + count + frame[at + (1 if version == 8 else 4) :]
    text = str(tree.explain_request(changed))
    assert text.startswith(f"OffsetCommitRequest v{version}: topics at byte {at}: ")
    assert text.endswith(words)


def test_tagged_field_that_does_not_fill_its_size_is_explained() -> None:
    frame = _frame(FetchRequest(cluster_id="c"), 12)
    assert frame.endswith(b"\x01\x00\x02\x02c")  # one tag, tag 0, two bytes, a string of one
    changed = frame[:-3] + b"\x03\x02cx"
    text = f"FetchRequest v12: tagged_fields.cluster_id at byte {len(frame) - 2}: expected a tagged field of 3 bytes"
    assert tree.explain_request(changed) == f"{text}, found 2"


def test_header_fields_are_explained() -> None:
    frame = _frame(_commit(), 8)
    assert tree.explain_request(frame[:3]) == "request: header.api_version at byte 2: expected 2 bytes, 1 is left"
    lie = frame[:8] + b"\x7f\xff" + frame[10:]
    words = "OffsetCommitRequest v8: header.client_id at byte 10: expected 32767 bytes of a string, "
    assert str(tree.explain_request(lie)).startswith(words)
    assert tree.explain_request(b"\x00\x08\x00\x50" + frame[4:]) == (
        "OffsetCommitRequest v80: header.api_version at byte 2: expected 0 to 10, found 80"
    )
    assert "header.api_key at byte 0: expected the key of a supported API, found 999" in str(
        tree.explain_request(b"\x03\xe7" + frame[2:])
    )


def test_string_that_is_not_utf8_is_read_and_remarked() -> None:
    frame = _frame(_commit(), 8).replace(b"orders", b"ord\xffrs")
    found = tree.request_tree(frame)
    assert found.fault is None
    assert [line for line in tree.text_lines(found) if "not UTF-8" in line] == [
        "25        name 'ord\ufffdrs' (not UTF-8)"
    ]


def test_large_frame_is_left_to_the_words_of_the_codec() -> None:
    request = DescribeGroupsRequest(groups=["g"] * tree.EXPLAINED_BYTES)
    assert tree.explain_request(_frame(request, 5)[:-1]) is None


def test_positions_of_a_tree_cover_every_byte_once() -> None:
    rng = random.Random(7)
    for cls in _REQUESTS:
        for version in _layouts(cls):
            found = tree.request_tree(_frame(sample(cls, version, rng), version))
            assert found.bytes_behind == 0
            at = 0
            for trace in (found.header, found.body):
                for child in trace.root.children:
                    assert child.start == at
                    at = child.end
                assert at == trace.root.end
            assert at == len(found.frame)
