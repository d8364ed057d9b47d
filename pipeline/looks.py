"""Up to where nothing is missing in any view of logs that were read side by side while a broker wrote them.

A place in a log is settled when all that had been written before it, in every log, has been read: then a marker that
is not there will not come, and a decision that is not there was never made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.decode.batches import partition_of
from pipeline.files import inside, read_json, write_json
from pipeline.planner import Planner
from pipeline.slices import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Ends = Mapping[str, int]

NO_MORE: Final = 2**62  # the end of a log that is gone
_FILE: Final = "_settled.json"  # of an archive


class Looks:
    """Where the logs of a data directory ended whenever they were looked at.

    A look passes one log after the other, so it is two looks that count: when all is read up to the second, then what
    was written before a place that the first one has seen is there, whichever log it is in.
    """

    def __init__(self, path: str, views: Mapping[str, Callable[[str], bool]]) -> None:
        """views: view -> whether a topic is in it."""
        self._views = views
        self._planner = Planner(Settings({"path": path, "records": "raw"}))
        self._looks = [self._planner.latest({}, None), self._planner.latest({}, None)]

    def settled(self, positions: Mapping[str, Ends], known: Iterable[str] = ()) -> dict[str, int] | None:
        """Log -> the end of what is settled; None: nothing is. positions: view -> log -> how far it was read.

        known: logs there have been; of those that are gone all is settled.
        """
        now = self._planner.latest({}, None)
        self._looks.append(now)
        done = [at for at, ends in enumerate(self._looks) if at and self._is_read(positions, ends, now)]
        if not done:
            return None
        self._looks = self._looks[done[-1] - 1 :]
        first = self._looks[0]
        return {log: NO_MORE for log in known if log not in now} | {log: first.get(log, 0) for log in now}

    def _is_read(self, positions: Mapping[str, Ends], ends: Ends, now: Ends) -> bool:
        """Whether every view has been read to the ends of those of its logs that are still there."""
        return all(
            position.get(log, 0) >= min(end, now[log])
            for view, position in positions.items()
            for log, end in ends.items()
            if log in now and self._views[view](partition_of(log)[0])
        )


def keep_settled(archive: str, ends: Ends) -> None:
    """Write down what of an archive is settled."""
    write_json(f"{archive}/{_FILE}", dict(sorted(ends.items())))


def settled_of(archive: str) -> dict[str, int]:
    """What of an archive is settled: log -> end."""
    found: dict[str, int] = read_json(inside(archive, _FILE)) or {}
    return found
