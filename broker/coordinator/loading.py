"""Loads the shards of a coordinator at start, and drops them where their topic could not be made."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from broker.coordinator.runtime import UNLOADED
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.data.directory import DataDirectory
    from broker.coordinator.runtime import Shard
    from broker.turn.turn import Turn

logger = logging.getLogger("momus.loading")


def load_shards(
    directory: DataDirectory, topic: str, shards: Sequence[Shard], loaded: Callable[[Shard], None] | None = None
) -> Iterator[None]:
    """Load in slices each shard that has a log on disk and is not loaded yet. `loaded` is called with each.

    A shard that cannot be loaded is logged and left: a request for it gets the error.
    """
    for index in on_disk(directory, topic, len(shards)):
        if (shard := shards[index]).state is UNLOADED:
            try:
                yield from shard.load()
                if loaded is not None:
                    loaded(shard)
            except (OSError, StorageError) as error:
                logger.error("cannot load %s: %s", shard, error)
            yield


def on_disk(directory: DataDirectory, topic: str, count: int) -> list[int]:
    """Which of the first `count` partitions of a topic have a log."""
    return [index for index in range(count) if directory.exists(topic, index)]


def drop_shards(turn: Turn, directory: DataDirectory, topic: str, shards: list[Shard]) -> None:
    """Empty a list of shards, and remove their logs: the record that makes their topic could not be written.

    The next start would remove the logs as those of a deleted topic, with all that was written into them until then.
    Now they go before anything that was written has been acknowledged, and the next request makes the topic anew.
    """
    gone, shards[:] = shards[:], []
    for index, shard in enumerate(gone):
        shard.forget()
        if shard.log is not None:
            turn.durability.forget(shard.flush_state)
            directory.forget(topic, index)
            shard.log.delete()
