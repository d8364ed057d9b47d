"""Finds the image of a group shard that a start can begin with, and reads it.

An image only saves time; the log is authoritative. An image that is damaged, older than the log's start, or made from
records that the log does not hold is removed, and the log is read from its beginning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from broker.coordinator.replay import Replay
from storage.files import snapshot

if TYPE_CHECKING:
    from storage.log.log import Log

logger = logging.getLogger("momus.images")


def begin_replay(
    make_machine: Callable[[], Any], log: Log, limit_offset: int, *, is_large: bool
) -> Generator[None, None, tuple[Replay, int]]:
    """Begin a replay, in slices: with the image of a large log that has one. Returns the offset to replay from, too.

    The images of a small log are removed. After a power cut it may be shorter than it was when they were made. Once it
    had grown beyond them, a later start would use an image of records that were lost.
    """
    replay = Replay(make_machine())
    if replay.table is not None:
        if is_large:
            start = yield from load_image(log, limit_offset, replay)
            if start is not None:
                return replay, start
            replay = Replay(make_machine())
        else:
            snapshot.remove_all(log.env.files, log.directory)
    return replay, log.log_start_offset


def load_image(log: Log, limit_offset: int, replay: Replay) -> Generator[None, None, int | None]:
    """Begin a replay with the newest image, in slices. Returns the offset to replay from; None: use a new Replay."""
    found = newest_image(log, limit_offset)
    if found is None:
        return None
    offset, payload = found
    try:
        yield from replay.image(payload)
    except ValueError as error:
        logger.warning("%s: %s", log.directory, error)
        remove_image(log, offset)
        return None
    return offset


def newest_image(log: Log, limit_offset: int) -> tuple[int, memoryview] | None:
    """(offset, payload) of the newest usable image. Unusable images are removed."""
    from broker.coordinator.offsets.snapshots import end_offset_of  # 3 ms: only large shards have an image

    files = log.env.files
    if not files.exists(log.directory):
        return None
    for offset in snapshot.offsets(files, log.directory):
        path = snapshot.path(log.directory, offset)
        payload = snapshot.read(files, path)
        if payload is not None and log.log_start_offset <= offset <= end_offset_of(payload) <= limit_offset:
            return offset, payload
        remove_image(log, offset)
    return None


def remove_image(log: Log, offset: int) -> None:
    """Remove an unusable image.

    Durable: when this returns. Otherwise it could be back after a loss of power, and be used once the log has grown.
    """
    logger.warning("deleting the unusable image of %s at offset %d", log.directory, offset)
    log.env.files.remove(snapshot.path(log.directory, offset))
    log.env.files.sync_dir(log.directory)
