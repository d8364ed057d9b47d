"""Bytes that are cut, changed or lie about sizes: MalformedError or a value, nothing else, and no memory for a lie."""

from __future__ import annotations

import random
import tracemalloc

import construct
import pytest
from cases import each_case
from codec_values import MESSAGES, NAMES, sample, versions

from protocol.codegen import codec
from protocol.declare import Message
from protocol.errors import MalformedError
from protocol.messages.offsets import OffsetCommitRequest, OffsetCommitRequestTopic
from protocol.primitives import struct

_LIES = (b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\x7f", b"\x7f\xff\xff\xff", b"\xff", b"\x80", b"\x00", b"\xfe\xff")


def _decode(cls: type[Message], version: int, data: bytes) -> tuple[Message, int] | None:
    """Anything but a value or MalformedError fails the test."""
    try:
        return codec(cls, version).decode(data)
    except MalformedError:
        return None


def _reference(cls: type[Message], version: int, data: bytes) -> Message | None:
    try:
        value: Message = struct(cls, version).parse(data)
    except construct.ConstructError:
        return None
    return value


@each_case("cls", MESSAGES, ids=NAMES)
def test_decode_of_cut_bytes_is_malformed(cls: type[Message]) -> None:
    rng = random.Random(1)
    for version in versions(cls):
        data = codec(cls, version).encode(sample(cls, version, rng))
        for cut in rng.sample(range(len(data)), min(len(data), 30)):
            with pytest.raises(MalformedError):
                codec(cls, version).decode(data[:cut])


@pytest.mark.heavy
@each_case("cls", MESSAGES, ids=NAMES)
def test_decode_of_changed_bytes_agrees_with_the_reference(cls: type[Message]) -> None:
    rng = random.Random(2)
    for version in versions(cls):
        data = codec(cls, version).encode(sample(cls, version, rng))
        for _ in range(8 if data else 0):
            changed = bytearray(data)
            at = rng.randrange(len(data))
            lie = rng.choice((*_LIES, rng.randbytes(1), rng.randbytes(2)))
            changed[at : at + len(lie)] = lie
            mine = _decode(cls, version, bytes(changed))
            theirs = _reference(cls, version, bytes(changed))
            # by their words: a float changed into NaN is not equal to itself
            assert repr(mine[0] if mine else None) == repr(theirs)


@pytest.mark.heavy
@each_case("cls", MESSAGES, ids=NAMES)
def test_decode_allocates_by_what_is_there_not_by_what_is_claimed(cls: type[Message]) -> None:
    rng = random.Random(3)
    version = cls.MAX_VERSION
    fast = codec(cls, version)
    data = fast.encode(sample(cls, version, rng))
    fast.decode(data)  # compiled outside of the measurement
    tracemalloc.start()
    try:
        for at in range(min(len(data), 60)):
            for lie in _LIES[:3]:
                _decode(cls, version, data[:at] + lie + data[at:])
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 200 * len(data) + 100_000


def test_malformed_error_names_message_version_field_and_what_is_left() -> None:
    fast = codec(OffsetCommitRequest, 8)
    data = fast.encode(OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="topic")]))
    with pytest.raises(MalformedError, match=r"OffsetCommitRequest v8: group_id claims 49 bytes, \d+ are left"):
        fast.decode(b"\x32" + data[1:])
    with pytest.raises(MalformedError, match=r"OffsetCommitRequest v8: group_id is null"):
        fast.decode(b"\x00" + data[1:])
    with pytest.raises(MalformedError, match=r"OffsetCommitRequest v8: the 4 bytes end inside .*member_id"):
        fast.decode(data[:4])
    with pytest.raises(MalformedError, match=r"topics claims 2097150 elements, \d+ bytes are left"):
        fast.decode(data.replace(b"\x02\x06topic", b"\xff\xff\x7f\x06topic"))
