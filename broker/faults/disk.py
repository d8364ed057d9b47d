"""Faults of the disk: writes and syncs of a cluster's logs that are slow, find no room, or fail.

They act below the log, in `storage/files/disk.py` and `storage/files/sim_env.py`, so that everything above meets them
as it would meet a real disk's: the log is cut back, its state is rebuilt, and the requests that depend on it are
refused.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Final

from broker.faults.named import Named
from storage.files.troubles import SYNC, WRITE, Trouble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.faults.fault import Fault
    from storage.files.env import Files

_ACTS_ON: Final = {"slow_disk": (WRITE, SYNC), "full_disk": (WRITE,), "fail_write": (WRITE,), "fail_fsync": (SYNC,)}
_LOG_FILE: Final = re.compile(r"(?:.*/)?(.+)-(\d+)/[^/]+")


class DiskFaults:
    """The faults of the files below one directory. Syncs ask from their threads; nothing here waits for another."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root.rstrip("/") + "/"
        self._faults: Sequence[Fault] = ()
        self._room: dict[str, int] = {}  # fault -> bytes that may still be written

    def set(self, faults: Sequence[Fault]) -> None:
        """These act from now on, instead of those before."""
        self._faults = faults
        self._room = {
            fault.name: self._room.get(fault.name, fault.values["free_bytes"])
            for fault in faults
            if fault.kind == "full_disk"
        }
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
            if kind in _ACTS_ON[fault.kind] and fault.matches_body(named) and fault.acts() and chosen is None:
                chosen = self._trouble(fault, size)
        return chosen

    def _trouble(self, fault: Fault, size: int) -> Trouble | None:
        if fault.kind == "full_disk":
            room = self._room[fault.name]
            if size <= room:
                self._room[fault.name] = room - size
                return None
            _acts(fault)
            self._room[fault.name] = 0
            return Trouble(errno.ENOSPC, short_bytes=room)
        _acts(fault)
        if fault.kind == "slow_disk":
            return Trouble(0, delay_ms=fault.values["ms"])
        return Trouble(errno.EIO)


def _acts(fault: Fault) -> None:
    fault.trigger.fired()
    fault.hit()
