"""The plan of a stream's micro-batch in a file: from where to where it reads, for the job that keeps the position.

Spark tells a job neither of the two before a micro-batch ends. So the data source writes them down when it plans, and a
job that starts again has the same micro-batch planned once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pipeline.files import damaged_state, read_state, write_json


class Plan(NamedTuple):
    """Two positions, each key of a log (topic_ids.py) -> offset."""

    start: dict[str, int]
    end: dict[str, int]
    is_repeated: bool = False  # the next micro-batch must be this one


def read_plan(path: str) -> Plan | None:
    """The last plan. None: nothing was planned yet.

    Errors: PipelineError: the file is damaged.
    """
    found = read_state(path)
    if found is None:
        return None
    if not isinstance(found, dict) or found.keys() != set(Plan._fields):
        raise damaged_state(path)
    return Plan(**found)


def write_plan(path: str, plan: Plan) -> None:
    """Replace the plan in one step."""
    write_json(path, plan._asdict())


class PlanFile:
    """The plan file of one stream, as its data source uses it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: Plan | None = None

    @property
    def start(self) -> dict[str, int]:
        """Where the stream begins."""
        return self._plan().start

    def repeated(self) -> dict[str, int] | None:
        """The end of the micro-batch that must be planned once more; None: there is none, or it was."""
        plan = self._plan()
        if not plan.is_repeated:
            return None
        self._known = plan._replace(is_repeated=False)
        return plan.end

    def keep(self, start: Mapping[str, int], end: Mapping[str, int]) -> None:
        """Write down the plan of the next micro-batch; one that reads nothing more needs no plan."""
        if end != self._plan().end:
            self._known = Plan(dict(start), dict(end))
            write_plan(self._path, self._known)

    def _plan(self) -> Plan:
        if self._known is None:  # not before it is needed: tasks have this reader too
            self._known = read_plan(self._path) or Plan({}, {})
        return self._known
