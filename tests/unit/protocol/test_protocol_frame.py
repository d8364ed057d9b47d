"""Frames come out whole and in order however the bytes came in."""

from __future__ import annotations

import pytest

from protocol.errors import MalformedError
from protocol.frame import FrameReader

_FRAMES = [b"first", b"", b"third" * 100]
_STREAM = b"".join([len(each).to_bytes(4, "big") + each for each in _FRAMES])


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 7, 64, 1000])
def test_frames_in_pieces_of_any_size_come_out_whole(piece: int) -> None:
    reader = FrameReader()
    found = []
    for at in range(0, len(_STREAM), piece):
        found += [bytes(frame) for frame in reader.feed(_STREAM[at : at + piece])]
    assert found == _FRAMES
    assert reader.waiting_bytes == 0


@pytest.mark.parametrize("cut", range(0, len(_STREAM), 13))
def test_frames_in_two_pieces_come_out_whole(cut: int) -> None:
    reader = FrameReader()
    found = [bytes(frame) for frame in reader.feed(_STREAM[:cut])]
    found += [bytes(frame) for frame in reader.feed(_STREAM[cut:])]
    assert found == _FRAMES


@pytest.mark.parametrize("size", [b"\x00\x00\x00\x0b", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"])
def test_frame_size_out_of_bounds_is_malformed_before_its_bytes_come(size: bytes) -> None:
    reader = FrameReader(max_bytes=10)
    assert list(reader.feed(size[:3])) == []
    with pytest.raises(MalformedError, match="the limit is 10"):
        list(reader.feed(size[3:]))
    assert reader.waiting_bytes <= 4
