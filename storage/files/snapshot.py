"""Images of coordinator state beside the log: they make a start cheap, the log stays the truth.

Layout: magic `momusST1` 8 | version u32 | payload length u64 | CRC-32C of the payload u32 | payload.
A snapshot that is damaged, cut short or of another version is as good as none. The suffix is our own: Kafka's
`.snapshot` holds producer state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from struct import Struct, error
from typing import Final

from fastcrc.crc32 import iscsi as crc32c

from storage.files.env import Buffer, Files

SUFFIX: Final = ".momus-state"
VERSION: Final = 1
_MAGIC: Final = b"momusST1"
_HEADER: Final = Struct(">8sIQI")
_CRC_SLICE_BYTES: Final = 4 << 20  # a millisecond, when they are in no cache


def path(directory: str, offset: int) -> str:
    """The file of the state as it was before the record at this offset."""
    return f"{directory}/{offset:020d}{SUFFIX}"


def offsets(files: Files, directory: str) -> list[int]:
    """Offsets of the snapshots there are, newest first."""
    names = [name for name in files.listdir(directory) if name.endswith(SUFFIX) and name[:20].isdigit()]
    return sorted((int(name[:20]) for name in names), reverse=True)


def write(files: Files, path: str, payload: Buffer, version: int = VERSION) -> None:
    """Durable: whole or not there at all."""
    for _ in write_slowly(files, path, (payload,), version):
        pass


def write_slowly(files: Files, path: str, payload: Sequence[Buffer], version: int = VERSION) -> Iterator[None]:
    """Write the parts of a payload beside the loop, where making, writing and syncing a file delays no request.

    The name comes in the loop: who iterates no more, because the directory has become another cluster's, leaves none.

    Durable: whole or not there at all, once the iterator is exhausted.
    """
    crc = length = handled = 0
    for part in payload:
        crc = crc32c(part, crc)
        length += len(part)
        handled += len(part)
        if handled >= _CRC_SLICE_BYTES:
            handled = 0
            yield
    temporary = path + ".tmp"

    def write_all() -> None:
        with suppress(FileNotFoundError):
            files.remove(temporary)
        file = files.open_append(temporary)
        file.append([_HEADER.pack(_MAGIC, version, length, crc), *payload])
        file.sync()
        file.close()

    written = files.start(write_all)
    while not written():
        yield
    files.rename(temporary, path)


def read(files: Files, path: str, version: int = VERSION) -> memoryview | None:
    """The payload; None when the file is missing, damaged or of another version."""
    try:
        data = memoryview(files.read_file(path))
        magic, found, length, crc = _HEADER.unpack_from(data)
    except (FileNotFoundError, error):
        return None
    payload = data[_HEADER.size :]
    if magic != _MAGIC or found != version or length != len(payload) or crc32c(payload) != crc:
        return None
    return payload


def remove_older(files: Files, directory: str, offset: int) -> None:
    """Drop every snapshot taken before this offset."""
    for older in offsets(files, directory):
        if older < offset:
            file = files.open_append(path(directory, older))
            file.retire()  # the loop takes the name away; the bytes are freed beside it
            files.remove(file.path)


def remove_all(files: Files, directory: str) -> None:
    """Drop every snapshot. Durable: when this returns."""
    if offsets(files, directory):
        remove_older(files, directory, 1 << 63)
        files.sync_dir(directory)
