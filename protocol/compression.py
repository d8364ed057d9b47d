"""The codecs of record batches, with a bound on how much a hostile batch may inflate.

cramjam is imported at the first compressed batch: most brokers never need it.
Every decoder writes into a buffer that is at most the limit long, so a bomb costs no more than the limit.
"""

from __future__ import annotations

import zlib
from typing import Final

from protocol.errors import ErrorCode, KafkaError
from protocol.record import Buffer

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")


_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
# magic, version 1 with independent blocks, blocks up to 64 KiB, checksum of these two bytes
_LZ4_HEADER: Final = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK_BYTES: Final = 64 * 1024
_LZ4_STORED: Final = 1 << 31
_LZ4_FAST_LEVEL: Final = 9
_FIRST_GUESS_BYTES: Final = 64 * 1024
# What cramjam says when the output does not fit: the one decode error that a larger buffer cures.
_TOO_SMALL: Final = "failed to write whole buffer"


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress as Kafka's Java client frames it (gzip member, xerial snappy, LZ4 frame, zstd frame).

    `level`: of gzip, LZ4 and zstd, as in KIP-390; None: the codec's default.
    """
    if codec == NONE:
        return bytes(data)
    if codec == GZIP:
        deflate = zlib.compressobj(-1 if level is None else level, wbits=31)
        return deflate.compress(data) + deflate.flush()
    import cramjam  # 0.9 ms, and most brokers never see compressed records

    if codec == SNAPPY:
        view = memoryview(data)
        parts = [_XERIAL_HEADER]
        for at in range(0, len(view), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK_BYTES]))
            parts += (len(block).to_bytes(4, "big"), block)
        return b"".join(parts)
    if codec == LZ4:
        return _lz4_frame(data, level)
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))
    raise _unknown(codec)


def decompress(codec: int, data: Buffer, max_inflated_bytes: int) -> bytes | memoryview:
    """Decompress whole or raise KafkaError.

    Errors:  CORRUPT_MESSAGE: not what the codec says; MESSAGE_TOO_LARGE: inflates beyond the limit;
             UNSUPPORTED_COMPRESSION_TYPE: a codec that Kafka does not define.
    """
    if codec == GZIP:
        return _gunzip(data, max_inflated_bytes)
    if codec == SNAPPY:
        return _unsnappy(data, max_inflated_bytes)
    if codec in (LZ4, ZSTD):
        return _inflate_frames(codec, data, max_inflated_bytes)
    if codec == NONE:
        return data if isinstance(data, bytes) else memoryview(data)
    raise _unknown(codec)


def _lz4_frame(data: Buffer, level: int | None) -> bytes:
    """Independent blocks of 64 KiB: Kafka's Java clients refuse the linked ones that lz4 libraries make."""
    view = memoryview(data)
    parts = [_LZ4_HEADER]
    for at in range(0, len(view), _LZ4_BLOCK_BYTES):
        plain = view[at : at + _LZ4_BLOCK_BYTES]
        block = _lz4_block(plain, level)
        if len(block) < len(plain):
            parts += (len(block).to_bytes(4, "little"), block)
        else:
            parts += ((len(plain) | _LZ4_STORED).to_bytes(4, "little"), bytes(plain))
    parts.append(b"\0\0\0\0")
    return b"".join(parts)


def _lz4_block(plain: Buffer, level: int | None) -> bytes:
    """One block of at most 64 KiB. Java's default level is that of its fast compressor, and ours too.

    cramjam compresses blocks at one level only. Its frames have one: with one block in it, a frame begins with 7 bytes,
    then the block's size and the block, which refers to no other.
    """
    import cramjam  # 0.9 ms, and most brokers never see compressed records

    if level in (None, _LZ4_FAST_LEVEL):
        return bytes(cramjam.lz4.compress_block(plain, store_size=False))
    frame = bytes(cramjam.lz4.compress(plain, level=level))
    size = int.from_bytes(frame[7:11], "little")
    return bytes(plain) if size & _LZ4_STORED else frame[11 : 11 + size]


def _gunzip(data: Buffer, limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit + 1
    rest: Buffer = data
    try:
        while len(rest):  # Java reads concatenated members as one stream
            inflate = zlib.decompressobj(wbits=31)
            part = inflate.decompress(rest, left)
            parts.append(part)
            left -= len(part)
            if left <= 0:
                del part  # an error keeps the locals of its frames until it is collected
                parts.clear()
                raise _too_large(limit)
            if not inflate.eof:
                raise _corrupt("gzip", "ends too early")
            rest = inflate.unused_data
    except zlib.error as error:
        raise _corrupt("gzip", str(error)) from None
    return b"".join(parts)


def _unsnappy(data: Buffer, limit: int) -> bytes:
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _unsnappy_block(view, limit)
    parts: list[bytes] = []
    left = limit
    at = len(_XERIAL_HEADER)
    while at < len(view):
        size = int.from_bytes(view[at : at + 4], "big")
        block = view[at + 4 : at + 4 + size]
        if len(block) != size or size == 0:
            raise _corrupt("snappy", "a block ends too early")
        part = _unsnappy_block(block, left)
        left -= len(part)
        parts.append(part)
        at += 4 + size
    return b"".join(parts)


def _unsnappy_block(block: memoryview, limit: int) -> bytes:
    import cramjam  # 0.9 ms, and most brokers never see compressed records

    try:
        if cramjam.snappy.decompress_raw_len(block) > limit:
            raise _too_large(limit)
        return bytes(cramjam.snappy.decompress_raw(block))
    except (cramjam.DecompressionError, ValueError) as error:
        raise _corrupt("snappy", str(error)) from None


def _inflate_frames(codec: int, data: Buffer, limit: int) -> memoryview:
    import cramjam  # 0.9 ms, and most brokers never see compressed records

    decompress_into = (cramjam.lz4 if codec == LZ4 else cramjam.zstd).decompress_into
    size = min(limit, max(_FIRST_GUESS_BYTES, 4 * len(data)))
    while True:
        out = bytearray(size)
        try:
            written = decompress_into(data, out)
            return memoryview(out)[:written]
        except (cramjam.DecompressionError, ValueError) as error:
            if _TOO_SMALL not in str(error):
                raise _corrupt(CODEC_NAMES[codec], str(error)) from None
        del out  # before the larger one is made, and not to be kept by the error
        if size >= limit:
            raise _too_large(limit)
        size = min(limit, size * 4)


def _corrupt(name: str, why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The {name} data of a record batch cannot be read: {why}")


def _too_large(limit: int) -> KafkaError:
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"A compressed record batch inflates to more than {limit} bytes")


def _unknown(codec: int) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression type id {codec}")
