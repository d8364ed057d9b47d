"""The image (snapshot) of the cluster's metadata. The log before it is not needed and is removed.

Name:     OFFSET-EPOCH.checkpoint (20 and 10 digits) beside the log, as KRaft's: the state before the record at OFFSET.
Content:  batches: a control record that begins it, the records of the state, a control record that ends it.
Durable:  whole or not at all. The log is cut after the image is written. A start that finds both reads the image and
          the log from its offset on, so a crash between any two writes changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final

from fastcrc.crc32 import iscsi as crc32c

from protocol.record_batch import ATTRIBUTES_POSITION, CONTROL, build_batch, control_type, iter_batches, iter_records
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from storage.files.env import Files
    from storage.log.log import Log

logger = logging.getLogger("momus.metadata_image")

SUFFIX: Final = ".checkpoint"
HEADER, FOOTER = 3, 4  # kinds of control records
RECORDS_A_BATCH: Final = 1000
WORTH_RECORDS: Final = 10_000  # a start that replays fewer (about 60 ms) needs no image
_KEY: Final = Struct(">hh")  # version, kind
_HEADER_VALUE: Final = Struct(">hqB")  # version, time of the last record, no tags
_FOOTER_VALUE: Final = Struct(">hB")


class MetadataImage:
    """The newest image in a directory; offset 0 when there is none."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self.offset = 0
        self.records = 0  # in the image, once it was read

    def find(self) -> None:
        """Find the newest image."""
        self.offset, self._path = max(self._all(), default=(0, ""))

    def _all(self) -> list[tuple[int, str]]:
        names = self._files.listdir(self._directory)
        return [
            (int(name[:20]), f"{self._directory}/{name}")
            for name in names
            if name.endswith(SUFFIX) and name[:20].isdigit()
        ]

    def values(self) -> Iterator[bytes]:
        """The records of the state. Errors: StorageError: the file is damaged."""
        self.records = 0
        if not self.offset:
            return
        data = memoryview(self._files.read_file(self._path))
        end, kind = 0, -1
        for position, header in iter_batches(data):
            end = position + header.size
            batch = data[position:end]
            if crc32c(batch[ATTRIBUTES_POSITION:]) != header.crc:
                raise self._damage(position)
            for record in iter_records(batch):
                if header.is_control and record.key is not None:
                    kind = control_type(record.key)
                elif record.value is not None:
                    self.records += 1
                    yield record.value
        if kind != FOOTER or end != len(data):
            raise self._damage(end)

    def _damage(self, position: int) -> StorageError:
        return StorageError(
            f"{self._path} is damaged at position {position}: restore the file from a copy, or use another --data-dir"
        )

    def write(self, metadata: ClusterMetadata, offset: int, leader_epoch: int, now_ms: int) -> None:
        """Write the state before the record at this offset; remove older images."""
        path = f"{self._directory}/{offset:020d}-{max(leader_epoch, 0):010d}{SUFFIX}"
        values = list(metadata.image_records())
        batches: list[bytes] = []
        count = 0

        def add(records: list[tuple[bytes | None, bytes]], attributes: int = 0) -> None:
            nonlocal count
            batch = build_batch(
                records, base_offset=count, leader_epoch=leader_epoch, timestamp_ms=now_ms, attributes=attributes
            )
            batches.append(batch)
            count += len(records)

        add([(_KEY.pack(0, HEADER), _HEADER_VALUE.pack(0, now_ms, 0))], CONTROL)
        for start in range(0, len(values), RECORDS_A_BATCH):
            add([(None, value) for value in values[start : start + RECORDS_A_BATCH]])
        add([(_KEY.pack(0, FOOTER), _FOOTER_VALUE.pack(0, 0))], CONTROL)
        self._files.write_file_atomic(path, b"".join(batches))
        self.offset, self._path, self.records = offset, path, len(values)
        for older, old_path in self._all():
            if older < offset:
                self._files.remove(old_path)

    def is_worth_it(self, metadata: ClusterMetadata, log: Log) -> bool:
        """Whether a start replays much more than the state has."""
        replayed = self.records + log.end_offset - self.offset
        return replayed > WORTH_RECORDS and replayed > 2 * metadata.record_count


def shrink(log: Log, image: MetadataImage, metadata: ClusterMetadata, now_ms: int) -> None:
    """Replace the log so far by an image, if that is worth it. If the disk fails, nothing changes."""
    if not image.is_worth_it(metadata, log):
        return
    try:
        log.sync()  # after a power cut the log must not end before the image does
        image.write(metadata, log.end_offset, log.leader_epoch, now_ms)
        cut_before(log, image.offset, now_ms)
    except (OSError, StorageError) as error:
        logger.error("cannot write a metadata snapshot, log not truncated: %s", error)


def cut_before(log: Log, offset: int, now_ms: int) -> None:
    """Remove the log before an image, perhaps all of it."""
    log.delete_records_before(offset)
    if log.end_offset == offset:
        log.roll()
    log.retain(now_ms)
