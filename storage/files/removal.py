"""Removes the directory of a partition, so that a crash in between leaves nothing that looks like a partition."""

from __future__ import annotations

import re
from typing import Final

from storage.files.env import Env

# A name of Kafka's: the partition, which Kafka shortens where the whole would be too long, 32 hex digits, "delete".
_LEFTOVER: Final = re.compile(r".+-\d+\.[0-9a-f]{32}-delete")
_MAX_NAME_BYTES: Final = 255


def remove_directory(env: Env, directory: str) -> None:
    """Rename the directory of a partition, then remove it. A start removes what a crash leaves (is_leftover).

    The new name is synced first where files are. Otherwise a loss of power could leave the directory under its old name
    and without its partition.metadata, and a topic that is created again would take the segments in it for its own.
    """
    parent, _, name = directory.rpartition("/")
    topic, _, index = name.rpartition("-")
    ending = f"-{index}.{env.rng.uuid_bytes().hex()}-delete"
    doomed = f"{parent}/{topic[: _MAX_NAME_BYTES - len(ending)]}{ending}"
    env.files.rename(directory, doomed)
    if env.files.syncs:
        env.files.sync_dir(parent)
    env.files.remove_tree(doomed)


def is_leftover(name: str) -> bool:
    """Whether a directory was being removed when its process died."""
    return _LEFTOVER.fullmatch(name) is not None
