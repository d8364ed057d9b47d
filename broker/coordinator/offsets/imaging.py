"""Takes images of a group shard while it serves requests: a start reads the image and replays only what came later."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from broker.coordinator.offsets.snapshots import KeptRecord, Labels, encode_head, encode_offsets
from broker.coordinator.runtime import READY
from protocol.record_batch import iter_records
from storage import snapshot

if TYPE_CHECKING:
    from broker.coordinator.runtime import Shard
    from storage.log import Log

logger = logging.getLogger("momus.images")

LEAST_RECORDS: Final = 10_000  # replayed within 0.1 s: less is not worth an image
KEPT_A_SLICE: Final = 50  # read back one by one: about 1 ms


def is_due(shard: Shard) -> bool:
    """Whether so much has been written since the last image that replaying it would take long."""
    if shard.state is not READY or shard.log.broken or not shard.may_be_cleaned:
        return False
    groups: int = shard.machine.offsets.group_count
    return shard.log.end_offset - shard.image_offset >= max(LEAST_RECORDS, groups // 4)


def take_image(shard: Shard) -> Iterator[None]:
    """Write an image of the shard as it is now. Given up when the shard is reloaded meanwhile."""
    machine, log = shard.machine, shard.log
    if machine.pending.producer_ids():
        return  # their offsets are in no column: a later round
    offset = log.end_offset
    wanted = sorted((at, key) for key, at in shard.kept.items())
    labels = Labels()
    blocks = yield from encode_offsets(machine.offsets, labels)
    end_offset = log.end_offset
    shard.image_offset = offset

    def write() -> Iterator[None]:
        kept: list[KeptRecord] = []
        for at, key in wanted:
            if len(kept) % KEPT_A_SLICE == KEPT_A_SLICE - 1:
                yield
            if log.broken:
                return
            value = _read_value(log, at, key)
            if value is not None:
                kept.append((at, key, value))
        files = log.env.files
        path = snapshot.path(log.directory, offset)
        try:
            yield from snapshot.write_slowly(files, path, [encode_head(end_offset, kept, labels), *blocks])
            snapshot.remove_older(files, log.directory, offset)
        except OSError as error:
            logger.warning("cannot write an image of %s: %s", shard, error)

    if shard.flush_state.durable_offset >= end_offset:
        yield from write()
    else:  # an image of what may yet be taken back is worse than none
        shard.flush_state.then(lambda durable: shard.in_background(write()) if durable else None)


def _read_value(log: Log, offset: int, key: bytes) -> bytes | None:
    """The value of one record; None when the cleaner has taken it: then a later one stands behind the image."""
    found = log.read(offset, 1, limit_offset=log.flushed_offset) if offset >= log.log_start_offset else None
    if found is not None:
        for record in iter_records(found.read()):
            if record.offset == offset and record.key == key:
                return record.value
    return None
