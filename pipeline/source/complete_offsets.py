"""Tracks up to which offset all views of growing logs are complete, so that checks across logs can be decided.

The views are read side by side, and one may be ahead of another. An offset of a log is complete when every record that
was written before it, in any log, has been read: then a transaction marker or a coordinator's decision that was not
read does not exist. Logs are named by their keys (topic_ids.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.decode.batches import partition_of
from pipeline.files import join_path, read_json, write_json
from pipeline.source.read_options import ReadOptions
from pipeline.source.stream_planner import StreamPlanner
from pipeline.source.topic_ids import log_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Ends = Mapping[str, int]

NO_MORE: Final = 2**62  # the end of a deleted log: nothing will be added to it
_FILE: Final = "_settled.json"  # in an archive's folder


class CompleteOffsets:
    """Remembers where the logs of a data directory ended at several times.

    A snapshot lists one log after another, so two snapshots are needed: when every view has been read up to the second,
    every record written before an end in the first has been read, whichever log it is in.
    """

    def __init__(self, path: str, views: Mapping[str, Callable[[str], bool]]) -> None:
        """views: view -> whether a topic is in it."""
        self._views = views
        self._planner = StreamPlanner(ReadOptions({"path": path, "records": "raw"}))
        self._snapshots = [self._planner.log_ends(), self._planner.log_ends()]

    def complete(self, positions: Mapping[str, Ends], known: Iterable[str] = ()) -> dict[str, int] | None:
        """Key -> the offset below which a log is complete; None: nothing is. positions: view -> key -> end of the read.

        known: logs that were read before; those deleted since are complete up to NO_MORE.
        """
        now = self._planner.log_ends()
        self._snapshots.append(now)
        done = [at for at, ends in enumerate(self._snapshots) if at and self._is_read(positions, ends, now)]
        if not done:
            return None
        self._snapshots = self._snapshots[done[-1] - 1 :]
        first = self._snapshots[0]
        return {log: NO_MORE for log in known if log not in now} | {log: first.get(log, 0) for log in now}

    def _is_read(self, positions: Mapping[str, Ends], ends: Ends, now: Ends) -> bool:
        """Whether every view has been read to the ends of those of its logs that still exist."""
        return all(
            position.get(log, 0) >= min(end, now[log])
            for view, position in positions.items()
            for log, end in ends.items()
            if log in now and self._views[view](partition_of(log_of(log))[0])
        )


def write_complete_offsets(archive: str, ends: Ends) -> None:
    """Store the complete offsets of an archive in its folder."""
    write_json(f"{archive}/{_FILE}", dict(sorted(ends.items())))


def read_complete_offsets(archive: str) -> dict[str, int]:
    """The stored complete offsets of an archive, key -> offset; empty when there are none."""
    found: dict[str, int] = read_json(join_path(archive, _FILE)) or {}
    return found
