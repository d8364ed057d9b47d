"""Copies of a data directory that share its bytes: what a snapshot keeps, what a fork and a restore begin with.

A copy has another name for each file (in memory: the same bytes). That is safe for what is only ever replaced as a
whole. What is changed in place is copied by whoever changes it first, under either name (storage/files/disk.py,
storage/files/inode.py).

file                                                     how it changes               in a copy
BASE.log                                                 appended to; cut after a     shared; copied before
                                                         failed write or sync         the first change
BASE.log.swap                                            whole; renamed               shared; a start finishes it
BASE.index, .timeindex, .txnindex                        replaced                     shared
OFFSET.snapshot, .momus-producers, .momus-state          replaced                     shared
OFFSET-EPOCH.checkpoint, leader-epoch-checkpoint         replaced                     shared
partition.metadata, meta.properties, seeded-starts       replaced                     shared
.momus-load                                              replaced                     shared
log-start-, cleaner-offset-checkpoint                    replaced                     shared
recovery-point-offset-checkpoint                         replaced                     written: not beyond what
                                                                                      a later copy leaves synced
BASE.log.cleaned, *.tmp, *.deleted, *-delete             unfinished, or on their way  left out
clusters/, security/, .snapshots/, .recordings/          not of this cluster's state  left out
.discarded.*, .lock, .momus-control                      not of this cluster's state  left out
.momus-synced                                            written in place             its bytes copied
.kafka_cleanshutdown                                     removed by a start           left out
.momus-copy                                              removed by a start           written: every log is whole
"""

from __future__ import annotations

from itertools import chain, count
from typing import TYPE_CHECKING, Final

from broker.cluster.topic_names import METADATA_TOPIC
from storage.files import checkpoints
from storage.segments.recovery import CLEANED_SUFFIX, DELETED_SUFFIX
from storage.segments.segment import LOG_SUFFIX
from storage.segments.synced_ends import FILE_NAME as SYNCED_ENDS

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from storage.files.env import Files, Rng

CONTROL: Final = ".momus-control"  # where the process is controlled: written by shell/control/place.py
LOADED: Final = ".momus-load"  # which files have filled the cluster: written by shell/load/start.py
CLUSTERS: Final = "clusters"  # folder of the other clusters of a process, in the data directory of its first one
RECORDINGS: Final = ".recordings"  # folder of what is recorded of the cluster
SECURITY: Final = "security"  # folder of test certificates, which a reset leaves in place
SNAPSHOTS: Final = ".snapshots"  # folder of the cluster's snapshots
DISCARDED: Final = ".discarded."  # begins the name of a folder with what a reset has put aside: see is_discarded
STAYING: Final = {CLUSTERS, CONTROL, RECORDINGS, SECURITY, SNAPSHOTS}

_LEFT_OUT: Final = {*STAYING, checkpoints.LOCK, checkpoints.CLEAN_SHUTDOWN}
_UNFINISHED: Final = (CLEANED_SUFFIX, DELETED_SUFFIX, ".tmp")


def is_private(path: str) -> bool:
    """Whether a file may hold what passwords are checked with: users are records of the metadata, and the requests that
    make users are in recordings."""
    return f"/{METADATA_TOPIC}-" in path or f"/{RECORDINGS}/" in path


def is_discarded(name: str) -> bool:
    """Whether a folder was put aside, to be removed. A name that ends with a dash and a number is a partition's."""
    return name.startswith(DISCARDED) and partition_of(name) is None


def new_discarded(files: Files, place: str, rng: Rng) -> str:
    """A folder to put aside what is to be removed; it is not there yet.

    A seeded cluster draws the same number in each of its lives, and the folder of the life before, or of another
    cluster with its seed, may still be on its way out.
    """
    drawn = f"{place}/{DISCARDED}{rng.getrandbits(64):016x}"
    names = chain([drawn], (f"{drawn}.{number}" for number in count(2)))
    return next(name for name in names if not files.exists(name))


def is_known(metadata: ClusterMetadata, name: str, index: int) -> bool:
    """Whether the cluster has this partition; that of its metadata is always there."""
    topic = metadata.topics.get(name)
    return name == METADATA_TOPIC or (topic is not None and index < len(topic.partitions))


def partition_of(name: str) -> tuple[str, int] | None:
    """Topic and index of the partition whose folder has this name; None: it is no such name."""
    topic, dash, index = name.rpartition("-")
    return (topic, int(index)) if dash and index.isdigit() else None


def partitions_in(files: Files, path: str) -> set[tuple[str, int]]:
    """Topic and index of each partition that has a folder in a data directory."""
    return {found for name in files.listdir(path) if (found := partition_of(name)) is not None}


class Copied:
    """What a copy has: `files`, `log_bytes` of all segments, and the base offset of each log's last segment."""

    __slots__ = ("files", "last_segments", "log_bytes")

    def __init__(self) -> None:
        self.files = 0
        self.log_bytes = 0
        self.last_segments: dict[tuple[str, int], int] = {}


def copy_directory(source: Files, old: str, target: Files, new: str, *, sync: bool = False) -> Copied:
    """Fill a directory with the files of another one. Nothing may write to it meanwhile.

    Durable: with sync, what is durable there, when this returns. Errors: OSError.
    """
    copied = Copied()
    folders = []  # synced at the end: a journaling file system writes all of them with the first one
    target.makedirs(new)
    for name in source.listdir(old):
        if name in _LEFT_OUT or is_discarded(name) or name.endswith((*_UNFINISHED, "-delete")):
            continue
        key = partition_of(name)
        if name == SYNCED_ENDS:  # what is noted meanwhile is synced here too
            target.write_file_atomic(f"{new}/{name}", source.read_file(f"{old}/{name}"), sync)
        elif key is None:
            target.adopt(source, f"{old}/{name}", f"{new}/{name}")
        if key is None:
            copied.files += 1
            continue
        folder, new_folder = f"{old}/{name}", f"{new}/{name}"
        target.makedirs(new_folder)
        for file in source.listdir(folder):
            if file.endswith(_UNFINISHED):
                continue
            target.adopt(source, f"{folder}/{file}", f"{new_folder}/{file}")
            copied.files += 1
            if file.endswith(LOG_SUFFIX):
                copied.log_bytes += target.file_size(f"{new_folder}/{file}")
                copied.last_segments[key] = int(file[: -len(LOG_SUFFIX)])
        folders.append(new_folder)
    for folder in (*folders, new, new.rpartition("/")[0]) if sync else ():
        target.sync_dir(folder)
    return copied


def move_aside(files: Files, path: str, doomed: str, *, sync: bool) -> None:
    """Move all that a reset takes into a folder that may be removed; the mark of an unfinished change goes last.

    sync     a loss of power leaves the mark, or nothing that was moved.
    """
    files.makedirs(doomed)
    stays = {*STAYING, checkpoints.LOCK, checkpoints.UNFINISHED}
    for name in files.listdir(path):
        if name not in stays and not is_discarded(name):
            files.rename(f"{path}/{name}", f"{doomed}/{name}")
    if sync:
        files.sync_dir(doomed)
        files.sync_dir(path)
    files.remove(f"{path}/{checkpoints.UNFINISHED}")


def remove_discarded(files: Files, path: str) -> None:
    """Remove what a crash has left of earlier resets and removals."""
    for name in files.listdir(path):
        if is_discarded(name):
            files.remove_tree(f"{path}/{name}")
