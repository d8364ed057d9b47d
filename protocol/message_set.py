"""Message sets of magic 0 and 1: how records were written before record batches, both ways.

A message: offset i64 | size i32 of what follows | CRC-32 u32 of all after it | magic i8 | attributes i8 | timestamp i64
(magic 1 alone) | key and value, each a length i32 (-1 null) and bytes. Attributes: 0-2 codec, 3 log append time (magic
1). There are no headers, producers or transactions.
A compressed message is a wrapper: its value is a compressed message set, its offset that of the last message in it. The
offsets within are absolute in magic 0, and relative in magic 1.

Source: KIP-31, KIP-32; KAFKA-3160: the LZ4 frames of magic 0 have a header checksum that covers the frame's magic too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final
from zlib import crc32

from protocol.compression import LZ4, ZSTD, compress, decompress
from protocol.errors import ErrorCode, KafkaError
from protocol.record import Buffer, Record
from protocol.record_batch import CODEC_MASK, LOG_APPEND_TIME, NO_TIMESTAMP

MAGIC_AT: Final = 16
_PLACE: Final = Struct(">qi")
_HEAD: Final = Struct(">Ibb")  # CRC, magic, attributes
_INT64: Final = Struct(">q")
_LENGTH: Final = Struct(">i")
_CRC_BYTES: Final = 4
_LEAST_BYTES: Final = {0: 14, 1: 22}  # of a message after its size
_NEWEST: Final = 1

_LZ4_MAGIC_BYTES: Final = 4
_LZ4_CONTENT_SIZE: Final = 0x08
_LZ4_DICTIONARY: Final = 0x01
_MASK: Final = 0xFFFFFFFF
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1


class ReadSet:
    """What a message set holds.

    records    key, value, headers (none) and timestamp of each, as build_batch takes them.
    codec      of the last wrapper; 0: none was compressed.
    append_ms  the greatest timestamp that claims to be the broker's (LogAppendTime); None: there is none.
    """

    __slots__ = ("append_ms", "codec", "records")

    def __init__(self) -> None:
        self.records: list[tuple[bytes | None, bytes | None, tuple[()], int]] = []
        self.codec = 0
        self.append_ms: int | None = None


# ---------------------------------------------------------------- reading


def read_message_set(data: Buffer, max_inflated_bytes: int) -> ReadSet:
    """All messages of a set, those in wrappers too. A message that is cut off at the end is left out.

    Errors:  CORRUPT_MESSAGE: a CRC or a length is wrong. INVALID_RECORD: a wrapper has no value, a message of another
             magic, or another wrapper in it. MESSAGE_TOO_LARGE: wrappers inflate beyond the limit.
             UNSUPPORTED_COMPRESSION_TYPE: a codec that message sets do not have.
    Source:  Kafka's AbstractLegacyRecordBatch, LegacyRecord, LogValidator.
    """
    found, left = ReadSet(), max_inflated_bytes
    for magic, attributes, timestamp, key, value in _messages(data):
        codec = attributes & CODEC_MASK
        if magic and attributes & LOG_APPEND_TIME:
            found.append_ms = max(timestamp, NO_TIMESTAMP if found.append_ms is None else found.append_ms)
        if not codec:
            found.records.append((key, value, (), timestamp))
            continue
        if value is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "A compressed message has no value")
        if codec >= ZSTD:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Message sets have no compression type {codec}")
        found.codec = codec
        if codec == LZ4 and magic == 0:
            value = _with_lz4_checksum(value, is_old=False)
        inner = decompress(codec, value, left)
        left -= len(inner)
        for inner_magic, inner_attributes, inner_timestamp, inner_key, inner_value in _messages(inner):
            if inner_magic != magic or inner_attributes & CODEC_MASK:
                raise KafkaError(ErrorCode.INVALID_RECORD, "A compressed message holds one of another kind than plain")
            found.records.append((inner_key, inner_value, (), inner_timestamp))
    return found


def _messages(data: Buffer) -> Iterator[tuple[int, int, int, bytes | None, bytes | None]]:
    """Magic, attributes, timestamp, key and value of each whole message."""
    view, at = memoryview(data), 0
    while at + _PLACE.size <= len(view):
        size = _PLACE.unpack_from(view, at)[1]
        at += _PLACE.size
        if size < _LEAST_BYTES[0]:
            raise _corrupt(f"A message of {size} bytes is less than a header")
        if at + size > len(view):
            return
        message, at = view[at : at + size], at + size
        crc, magic, attributes = _HEAD.unpack_from(message)
        if not 0 <= magic <= _NEWEST:
            raise _corrupt(f"Invalid magic {magic} in a message set")
        if size < _LEAST_BYTES[magic]:
            raise _corrupt(f"A message of {size} bytes is less than a header")
        if crc32(message[_CRC_BYTES:]) != crc:
            raise _corrupt(f"The message's CRC is not the stored {crc:#010x}")
        pos, timestamp = _HEAD.size, NO_TIMESTAMP
        if magic:
            timestamp = _INT64.unpack_from(message, pos)[0]
            pos += _INT64.size
        key, pos = _bytes(message, pos)
        value, pos = _bytes(message, pos)
        if pos != size:
            raise _corrupt("A message's key and value do not fill it")
        yield magic, attributes, timestamp, key, value


def _bytes(message: memoryview, pos: int) -> tuple[bytes | None, int]:
    if pos + _LENGTH.size > len(message):
        raise _corrupt("A message ends in a length")
    length = _LENGTH.unpack_from(message, pos)[0]
    pos += _LENGTH.size
    if length < 0:
        if length != -1:
            raise _corrupt(f"A message has a field of {length} bytes")
        return None, pos
    if pos + length > len(message):
        raise _corrupt("A message's field reaches over its end")
    return bytes(message[pos : pos + length]), pos + length


# ---------------------------------------------------------------- writing


def build_message_set(records: Sequence[Record], magic: int, *, codec: int = 0, is_append_time: bool = False) -> bytes:
    """The records as messages, or as one wrapper with them where there is a codec. Headers are left out.

    Errors:  UNSUPPORTED_COMPRESSION_TYPE: zstd, which message sets do not have.
    """
    if codec >= ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Message sets have no compression type {codec}")
    flags = LOG_APPEND_TIME if magic and is_append_time else 0
    if not codec or not records:
        return b"".join([_message(r.offset, magic, flags, r.timestamp, r.key, r.value) for r in records])
    base = records[0].offset if magic else 0
    inner = b"".join([_message(r.offset - base, magic, flags, r.timestamp, r.key, r.value) for r in records])
    packed = compress(codec, inner)
    if codec == LZ4 and magic == 0:
        packed = _with_lz4_checksum(packed, is_old=True)
    latest = max(r.timestamp for r in records)
    return _message(records[-1].offset, magic, flags | codec, latest, None, packed)


def _message(offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
    fields = [bytes((magic, attributes))]
    if magic:
        fields.append(_INT64.pack(timestamp))
    for field in (key, value):
        fields.append(_LENGTH.pack(-1 if field is None else len(field)))
        if field is not None:
            fields.append(field)
    body = b"".join(fields)
    return _PLACE.pack(offset, _CRC_BYTES + len(body)) + crc32(body).to_bytes(_CRC_BYTES, "big") + body


# ---------------------------------------------------------------- LZ4 frames of magic 0


def _with_lz4_checksum(frame: bytes, *, is_old: bool) -> bytes:
    """The frame with the header checksum as it should be, or (is_old) as clients of magic 0 write and expect it."""
    if len(frame) <= _LZ4_MAGIC_BYTES + 2:
        return frame  # too short for a frame: decompress says so
    flags = frame[_LZ4_MAGIC_BYTES]
    end = _LZ4_MAGIC_BYTES + 2 + (8 if flags & _LZ4_CONTENT_SIZE else 0) + (4 if flags & _LZ4_DICTIONARY else 0)
    if end >= len(frame):
        return frame
    checksum = xxh32(frame[0 if is_old else _LZ4_MAGIC_BYTES : end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]


def xxh32(data: bytes) -> int:
    """xxHash, 32 bits, seed 0, of any length.

    Source: the xxHash specification, which LZ4 frames use for their checksums.
    """
    at, size = 0, len(data)
    if size >= 16:
        lanes = [_PRIME_1 + _PRIME_2 & _MASK, _PRIME_2, 0, -_PRIME_1 & _MASK]
        while at + 16 <= size:
            for lane in range(4):
                word = int.from_bytes(data[at : at + 4], "little")
                lanes[lane] = _rotated(lanes[lane] + word * _PRIME_2 & _MASK, 13) * _PRIME_1 & _MASK
                at += 4
        state = sum(_rotated(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    else:
        state = _PRIME_5
    state = state + size & _MASK
    while at + 4 <= size:
        word = int.from_bytes(data[at : at + 4], "little")
        state = _rotated(state + word * _PRIME_3 & _MASK, 17) * _PRIME_4 & _MASK
        at += 4
    for byte in data[at:]:
        state = _rotated(state + byte * _PRIME_5 & _MASK, 11) * _PRIME_1 & _MASK
    state = (state ^ state >> 15) * _PRIME_2 & _MASK
    state = (state ^ state >> 13) * _PRIME_3 & _MASK
    return state ^ state >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def _corrupt(why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, why)
