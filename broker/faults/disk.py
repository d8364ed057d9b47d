"""Faults of the disk: writes and syncs of a cluster's logs that are slow, find no room, or fail.

They act below the log, in `storage/files/disk.py` and `storage/files/sim_env.py`, so that everything above meets them
as it would meet a real disk's: the log is cut back, its state is rebuilt, and the requests that depend on it are
refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from broker.faults.kinds import DiskKind
from broker.faults.named import Named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.faults.fault import Fault
    from storage.files.env import Files
    from storage.files.troubles import Trouble

_LOG_FILE: Final = re.compile(r"(?:.*/)?(.+)-(\d+)/[^/]+")


class DiskFaults:
    """The faults of the files below one directory. Syncs ask from their threads; nothing here waits for another."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root.rstrip("/") + "/"
        self._faults: Sequence[Fault] = ()
        self._room: dict[str, int] = {}  # fault -> bytes of its `free_bytes` that may still be written

    def set(self, faults: Sequence[Fault]) -> None:
        """These act from now on, instead of those before."""
        self._faults = faults
        self._room = {fault.name: self._room.get(fault.name, fault.values.get("free_bytes", 0)) for fault in faults}
        if faults:
            self._files.troubles[self._root] = self._ask
        else:
            self._files.troubles.pop(self._root, None)

    def _ask(self, kind: str, path: str, size: int) -> Trouble | None:
        """What goes wrong with a write or sync. `size`: bytes of the write."""
        match = _LOG_FILE.fullmatch(path)
        named = Named()
        if match:
            named.topics.add(match[1])
            named.partitions.add((match[1], int(match[2])))
        chosen = None
        for fault in self._faults:
            assert isinstance(fault.kind, DiskKind)
            if kind in fault.kind.acts_on and fault.matches_body(named) and fault.acts() and chosen is None:
                chosen = self._trouble(fault, fault.kind, size)
        return chosen

    def _trouble(self, fault: Fault, kind: DiskKind, size: int) -> Trouble | None:
        room = self._room[fault.name]
        trouble = kind.trouble(fault.values, size, room)
        if trouble is None:
            self._room[fault.name] = room - size
            return None
        fault.trigger.fired()
        fault.hit()
        self._room[fault.name] = 0
        return trouble
