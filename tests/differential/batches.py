"""Record batches from their descriptions, with every fault that a client could make; and batches as plain values.

A description is a dictionary. `recs`: rows of key, value, headers ([name, value] pairs) and time delta, shorter rows
allowed; then the fields of the header (`ts`, `max_ts`, `pid`, `epoch`, `seq`, `attrs`, `codec`, `base`, `lep`), and
`fault`, a pair of a name and a number. {"raw": HEX} stands for bytes that are no batch, {"legacy": 0 or 1, "recs": ...}
for a message set of that magic. Texts are UTF-8.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from zlib import crc32

from fastcrc.crc32 import iscsi as crc32c

from protocol.compression import compress, decompress
from protocol.errors import KafkaError
from protocol.record_batch import CODEC_MASK, CONTROL, HEADER_BYTES, iter_batches

COVERED = struct.Struct(">hiqqqhii")  # what the CRC covers, before the records
PREFIX = struct.Struct(">qiibI")
LONGEST_SHOWN = 300
SNAPPY = 2
LEGACY_TIME = 1_700_000_000_000

Row = list[Any]
Description = dict[str, Any]


def varint(value: int) -> bytes:
    """Zigzag, as records have it."""
    value = (value << 1) ^ (value >> 63)
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _sized(text: str | None) -> bytes:
    if text is None:
        return varint(-1)
    data = text.encode()
    return varint(len(data)) + data


def _record(row: Row, offset_delta: int, fault: str, number: int) -> bytes:
    key, value, headers, time_delta = [*row, None, None, None][:4] if len(row) < 4 else row
    attributes = number if fault == "record-attributes" else 0
    data = struct.pack("b", attributes) + varint(time_delta or 0) + varint(offset_delta) + _sized(key) + _sized(value)
    data += varint(number if fault == "headers" else len(headers or []))
    for name, content in headers or []:
        data += _sized(name) + _sized(content)
    if fault == "record-tail":
        data += b"zz"
    return varint(len(data) + (number if fault == "record-length" else 0)) + data


def make_batch(given: Description) -> bytes:
    """One batch, or what stands in the place of one."""
    if "raw" in given:
        return bytes.fromhex(given["raw"])
    if "legacy" in given:
        return _message_set(given["legacy"], given["recs"])
    fault, number = given.get("fault") or ("", 0)
    rows: list[Row] = [[None, "b" * given["big"]]] if "big" in given else given["recs"]
    first_time = given.get("ts", 0)
    records = b""
    latest = first_time
    for at, row in enumerate(rows):
        is_off = fault == "delta" and at == len(rows) - 1
        records += _record(row, at + number if is_off else at, fault, number)
        latest = max(latest, first_time + ((row[3] if len(row) > 3 else 0) or 0))
    codec = given.get("codec", 0)
    if given.get("unframed"):
        import cramjam  # a codec that most cases do without

        codec, records = SNAPPY, bytes(cramjam.snappy.compress_raw(records))
    elif codec:
        records = compress(codec, records)
    if fault == "bad-compression":
        records = b"\xde\xad\xbe\xef" * 4
    attributes = given.get("attrs", 0) | codec | (number if fault == "attributes" else 0)
    covered = COVERED.pack(
        attributes,
        len(rows) - 1 + (number if fault == "last-delta" else 0),
        first_time,
        given.get("max_ts", latest),
        given.get("pid", -1),
        given.get("epoch", -1),
        given.get("seq", -1),
        len(rows) + (number if fault == "count" else 0),
    )
    return _framed(given, covered + records, fault, number)


def _framed(given: Description, covered: bytes, fault: str, number: int) -> bytes:
    checksum = crc32c(covered) ^ (1 << (number & 31) if fault == "crc" else 0)
    length = len(covered) + 9 + (number if fault == "length" else 0)
    magic = number if fault == "magic" else 2
    data = PREFIX.pack(given.get("base", 0), length, given.get("lep", -1), magic, checksum) + covered
    if fault == "cut":
        data = data[: max(0, len(data) - number)]
    return data + bytes(number if fault == "tail" else 0)


def _message_set(magic: int, rows: list[Row]) -> bytes:
    found = b""
    for at, row in enumerate(rows):
        data = struct.pack(">bb", magic, 0) + (struct.pack(">q", LEGACY_TIME) if magic else b"")
        for text in row[:2]:
            content = None if text is None else text.encode()
            data += struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content
        found += struct.pack(">qiI", at, len(data) + 4, crc32(data)) + data
    return found


def read_batches(data: bytes, producer: Callable[[int], Any], moment: Callable[[int], Any]) -> list[dict[str, Any]]:
    """The whole batches of a fetched partition. `producer` names an id, `moment` a time: brokers differ in both."""
    found: list[dict[str, Any]] = []
    for position, header in iter_batches(data):
        batch = data[position : position + header.size]
        row: dict[str, Any] = {
            "base": header.base_offset,
            "epoch": header.partition_leader_epoch,
            "magic": header.magic,
        }
        found.append(row)
        if header.magic != 2 or crc32c(batch[21:]) != header.crc:
            row["bad"] = "magic or checksum"
            continue
        row |= {
            "attrs": header.attributes,
            "last": header.last_offset_delta,
            "ts": moment(header.base_timestamp),
            "maxts": moment(header.max_timestamp),
            "pid": producer(header.producer_id),
            "pepoch": header.producer_epoch,
            "seq": header.base_sequence,
            "count": header.record_count,
        }
        section = batch[HEADER_BYTES:]
        if header.attributes & CONTROL:
            row["control"] = section[
                4:11
            ].hex()  # behind length, attributes, time and offset: the key's size, version, type
        else:
            row["body"] = _shown(header.attributes & CODEC_MASK, section)
    return found


def _shown(codec: int, section: bytes) -> str:
    try:
        inflated = bytes(decompress(codec, section, 1 << 26)) if codec else section
    except KafkaError:
        return f"undecodable {section[:40].hex()}"
    if len(inflated) > LONGEST_SHOWN:
        return f"{inflated[:LONGEST_SHOWN].hex()}...{len(inflated)}:{crc32(inflated)}"
    return inflated.hex()
