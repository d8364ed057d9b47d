"""Takes images of a group shard while it serves requests: a start reads the image and replays only what came later."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from broker.coordinator.offsets.snapshots import KeptRecord, Labels, encode_head, encode_offsets, encode_pending
from broker.coordinator.runtime import READY
from protocol.record_batch import iter_records
from storage.files import snapshot

if TYPE_CHECKING:
    from broker.coordinator.runtime import Shard
    from storage.log.log import Log

logger = logging.getLogger("momus.images")

LEAST_RECORDS: Final = 10_000  # replayed in 0.1 s; fewer are not worth an image
MOST_PENDING: Final = 1000  # pending offsets in an image: about 3 ms
KEPT_A_SLICE: Final = 50  # records read one by one in a step: about 1 ms


def is_due(shard: Shard) -> bool:
    """Whether replaying what was written since the last image would take long."""
    if shard.state is not READY or shard.log.broken or not shard.may_be_cleaned:
        return False
    groups: int = shard.machine.offsets.group_count
    return shard.log.end_offset - shard.image_offset >= max(LEAST_RECORDS, groups // 4)


def clean_commits(shard: Shard, producer_expiration_ms: int, now_ms: int, limit_offset: int) -> Iterator[None]:
    """Clean the log of a coordinator. A start from an image must find the tombstones of what was deleted after it.

    So tombstones after the oldest image stay; if the last pass kept some that were due, a new image comes first.
    """
    log = shard.log
    if log.held_tombstones:
        yield from take_image(shard)
    images = snapshot.offsets(log.env.files, log.directory)
    if shard.image_begun is not None:
        images.append(shard.image_begun)  # it may be there before the pass has ended
    yield from log.clean(
        now_ms,
        limit_offset,
        producer_expiration_ms=producer_expiration_ms,
        commits=True,
        tombstones_end=min(images, default=None),
    )


def take_image(shard: Shard) -> Iterator[None]:
    """Write an image of the shard as it is now. Stops when the shard is reloaded meanwhile: a failed write, or a new
    leader that had missed records, has taken back what may be in it."""
    machine, log = shard.machine, shard.log

    def is_outdated() -> bool:
        return shard.machine is not machine or shard.state is not READY

    if machine.pending.count > MOST_PENDING:
        return  # writing so many in one step would hold up requests: a later round takes the image
    offset = shard.image_begun = log.end_offset
    pending = encode_pending(machine.pending)  # in this step: markers that come while the slices are taken end them
    wanted = sorted((at, key) for key, at in shard.kept.items())
    labels = Labels()
    blocks = yield from encode_offsets(machine.offsets, labels)
    if is_outdated():
        return
    end_offset = log.end_offset
    shard.image_offset = offset

    def write() -> Iterator[None]:
        if is_outdated():
            return
        kept: list[KeptRecord] = []
        for at, key in wanted:
            if len(kept) % KEPT_A_SLICE == KEPT_A_SLICE - 1:
                yield
            if log.broken or is_outdated():
                return
            value = _read_value(log, at, key)
            if value is not None:
                kept.append((at, key, value))
        files = log.env.files
        path = snapshot.path(log.directory, offset)
        try:
            for _ in snapshot.write_slowly(files, path, [encode_head(end_offset, kept, labels), *blocks, pending]):
                yield
                if is_outdated():
                    return  # before it has its name
            snapshot.remove_older(files, log.directory, offset)
        except OSError as error:
            logger.warning("cannot write an image of %s: %s", shard, error)

    if shard.flush_state.durable_offset >= end_offset:
        yield from write()
    else:  # an image must not hold what a crash could still take back
        shard.flush_state.then(lambda durable: shard.in_background(write()) if durable else None)


def _read_value(log: Log, offset: int, key: bytes) -> bytes | None:
    """The value of one record. None: the cleaner removed it, so a later record follows the image."""
    found = log.read(offset, 1, limit_offset=log.flushed_offset) if offset >= log.log_start_offset else None
    if found is not None:
        for record in iter_records(found.read()):
            if record.offset == offset and record.key == key:
                return record.value
    return None
