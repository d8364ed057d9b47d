"""The snapshots of a cluster, by name: copies of its data directory, on its disk or in memory.

A snapshot holds what a restart would find at that moment (broker/cluster/data/copies.py), and how the clock was
moved. It is in a folder of its own in the data directory, or in memory where the cluster does, and stays through
resets and restores. On disk a later process finds it again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from broker.cluster.data.copies import DISCARDED, SNAPSHOTS, copy_directory
from broker.shell.cluster_plan import NAME, ClusterRefusedError, Names, Origin, SnapshotRow, UnknownSnapshotError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.broker import Broker
    from storage.clock.movable_clock import MovableClock
    from storage.files.env import Files

MOST: Final = 1000
ABOUT: Final = "about.json"  # written last: without it a snapshot is not whole
DATA: Final = "data"


class Snapshots:
    """The snapshots of one cluster. `files`: where its lives have their files; for those in memory, another memory."""

    def __init__(self, files: Files, data_dir: str) -> None:
        self.files = files
        self._data_dir = data_dir
        self._root = f"{data_dir}/{SNAPSHOTS}"
        self._names = Names("snapshot")
        self._removed = 0
        self._users: dict[str, dict[str, str]] = {}  # by snapshot; a later process knows those it was started with

    def all(self) -> list[SnapshotRow]:
        """What is known of each, oldest first."""
        files = self.files
        found: list[SnapshotRow] = [
            json.loads(files.read_file(f"{self._root}/{name}/{ABOUT}"))
            for name in files.listdir(self._root)
            if NAME.fullmatch(name) and files.exists(f"{self._root}/{name}/{ABOUT}")
        ]
        return sorted(found, key=lambda each: each["taken_ms"])

    def take(
        self, name: str | None, broker: Broker, clock: MovableClock, users: Mapping[str, str] | None = None
    ) -> SnapshotRow:
        """Keep a cluster as it is. Errors: ClusterRefusedError, OSError, StorageError: there is no such snapshot."""
        files = self.files
        names = files.listdir(self._root)
        if len(names) >= MOST:
            raise ClusterRefusedError(f"a cluster has {MOST} snapshots at most: remove some")
        name = self._names.checked(name, lambda made: files.exists(f"{self._root}/{made}"))
        path = f"{self._root}/{name}"
        if files.exists(f"{path}/{ABOUT}"):
            raise ClusterRefusedError(f"there is a snapshot {name} already")
        files.remove_tree(path)  # what a crash has left
        try:
            copied = broker.directory.copy_to(files, f"{path}/{DATA}")
            about: SnapshotRow = {
                "name": name,
                "taken_ms": clock.now_ms(),
                "ahead_ms": clock.ahead_ms,
                "stands_at_ms": -1 if clock.stands_at_ms is None else clock.stands_at_ms,
                "files": copied.files,
                "log_bytes": copied.log_bytes,
            }
            files.write_file_atomic(f"{path}/{ABOUT}", json.dumps(about).encode(), sync=False)
        except BaseException:
            files.remove_tree(path)
            raise
        self._users.pop(name, None)
        if users is not None:
            self._users[name] = dict(users)
        return about

    def users(self, name: str, present: Mapping[str, str]) -> dict[str, str]:
        """The users whose credentials a snapshot has, name -> password; those of now where that is not known."""
        return dict(self._users.get(name, present))

    def origin(self, name: str) -> Origin:
        """The beginning of a life from a snapshot. Errors: UnknownSnapshotError."""
        about, source, data = self.find(name), self.files, f"{self._root}/{name}/{DATA}"

        def fill(files: Files, path: str, sync: bool) -> None:
            copy_directory(source, data, files, path, sync=sync)

        return Origin(fill, about["ahead_ms"], None if about["stands_at_ms"] < 0 else about["stands_at_ms"])

    def find(self, name: str) -> SnapshotRow:
        """What is known of a snapshot. Errors: UnknownSnapshotError."""
        path = f"{self._root}/{name}/{ABOUT}"
        if not NAME.fullmatch(name) or not self.files.exists(path):
            known = ", ".join(each["name"] for each in self.all()[:10])
            raise UnknownSnapshotError(f"no such snapshot: {name:.100}; there are {known or 'none'}")
        about: SnapshotRow = json.loads(self.files.read_file(path))
        return about

    def remove(self, name: str) -> Callable[[], None]:
        """Give a snapshot up. Returns what removes its files, which may take long.

        Errors: UnknownSnapshotError, OSError.
        """
        self.find(name)
        self._removed += 1
        files, doomed = self.files, f"{self._data_dir}/{DISCARDED}snapshot.{self._removed}"  # a start removes it
        files.rename(f"{self._root}/{name}", doomed)
        return lambda: files.remove_tree(doomed)
