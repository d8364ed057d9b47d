"""Keeps the position of a job with `--follow`: its last finished micro-batch, and how far that one had read.

    OUTPUT/_position.json        the position, replaced in one step
    OUTPUT/_plan/VIEW.json       the micro-batch at work, as the data source has planned it (source/plan_file.py)

A micro-batch is finished once the position names it, which is its last step. One that was planned and not finished is
planned the same again, and replaces what it had written. Spark's checkpoint is not read. Of a data directory it is not
used either; it begins again with each start. Of an archive, whose tables Spark's own sources read, it has the position
in them: a micro-batch that Spark repeats though it is finished is passed over.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pipeline.errors import PipelineError
from pipeline.files import damaged_state, is_directory, read_state, write_json
from pipeline.source.plan_file import Plan, read_plan, write_plan

POSITION: Final = "_position.json"
CHECKPOINT: Final = "_checkpoint"  # Spark's
STATE: Final = "_state"
DATA_DIRECTORY: Final = "logs"  # the source of a view that is no archive's table
VERSION: Final = 1

Ends = dict[str, dict[str, int]]  # view of a data directory -> key of a log -> the offset after what was read


class Position(NamedTuple):
    """The last finished micro-batch."""

    batch: int  # its number; -1: none is finished yet
    sources: dict[str, list[str]]  # view -> the tables of an archive that it is read from, or DATA_DIRECTORY
    ends: Ends


def read_position(output: str) -> Position | None:
    """The position in a folder; None: the folder is new.

    Errors:  PipelineError: the folder was begun by an earlier version, or the file is damaged.
    """
    path = f"{output}/{POSITION}"
    found: Any = read_state(path)
    if found is None:
        if is_directory(f"{output}/{CHECKPOINT}") or is_directory(f"{output}/{STATE}"):
            raise PipelineError(
                f"{output} has no {POSITION}: an earlier version of momus began it, whose position and state are not "
                "read any more; use another --output"
            )
        return None
    if not isinstance(found, dict) or found.pop("version", None) != VERSION:
        raise PipelineError(f"{path} was written by another version of momus: use another --output")
    if found.keys() != set(Position._fields):
        raise damaged_state(path)
    return Position(**found)


class PositionTable:
    """The position in one folder, and the plans of its views."""

    def __init__(self, output: str, sources: dict[str, list[str]]) -> None:
        """Errors: PipelineError: the folder was begun with other tables, or see read_position."""
        self._output = output
        self._logs = [view for view, names in sources.items() if names == [DATA_DIRECTORY]]
        self.of_logs_alone = len(self._logs) == len(sources)
        found = read_position(output)
        if found is not None and found.batch >= 0 and found.sources != sources:
            raise PipelineError(f"--input now has other tables than when {output} was begun: use another --output")
        if found is None or found.batch < 0:
            found = Position(-1, sources, {view: {} for view in self._logs})
            self._write(found)
        self.position = found
        if found.batch >= 0 and not self.of_logs_alone and not is_directory(f"{output}/{CHECKPOINT}"):
            raise PipelineError(
                f"{output}/{CHECKPOINT} is gone, and with it the position in the archive: use another --output"
            )

    @property
    def needs_checkpoint(self) -> bool:
        """Whether Spark must go on from its checkpoint; else it must begin a new one."""
        return not self.of_logs_alone and self.position.batch >= 0

    def plan_path(self, view: str) -> str:
        """The plan file of a view."""
        return f"{self._output}/_plan/{view}.json"

    def prepare(self) -> None:
        """Before a query without a checkpoint starts: have it begin at the position, with the unfinished plan."""
        planned = self.planned()
        is_repeated = self.of_logs_alone and planned != self.position.ends
        for view, start in self.position.ends.items():
            write_plan(self.plan_path(view), Plan(start, planned[view], is_repeated))

    def planned(self) -> Ends:
        """How far the micro-batch at work reads; the position, where nothing is planned beyond it."""
        found = {}
        for view, start in self.position.ends.items():
            plan = read_plan(self.plan_path(view))
            found[view] = plan.end if plan is not None and plan.start == start else start
        return found

    def number(self, spark_batch: int) -> int | None:
        """The number of the micro-batch that Spark begins; None: it is finished already, or nothing is new."""
        if not self.of_logs_alone:  # Spark's numbers go on, as its checkpoint does
            return spark_batch if spark_batch > self.position.batch else None
        is_new = self.position.batch < 0 or self.planned() != self.position.ends
        return self.position.batch + 1 if is_new else None

    def finish(self, batch: int, ends: Ends) -> None:
        """The last step of a micro-batch: from now on it counts."""
        position = self.position._replace(batch=batch, ends=ends)
        self._write(position)
        self.position = position

    def _write(self, position: Position) -> None:
        write_json(f"{self._output}/{POSITION}", {"version": VERSION, **position._asdict()})
