"""Stands between a run of a test and the clusters that it makes: sets what is to happen, and reads what was asked."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from momus.control import NotOnUpstreamError
from momus.kit.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from momus.explore.schedule import Schedule
    from momus.handle import ClusterHandle

PREFIX = "explore."  # of the names of its faults; a test does not fail for those that never act
JOURNAL_BYTES = 64 << 20  # at most: a run without all its requests cannot be judged


class Address(NamedTuple):
    """Where a cluster of a run can be asked, by others too."""

    control: str
    prefix: str
    servers: str


class Cluster:
    """A cluster of the run, through its starts, resets and restores."""

    def __init__(self, number: int, of: ClusterHandle) -> None:
        self.number = number
        self.of = of
        self.address = Address("", "", "")
        self.passed: dict[int, int] = {}  # step -> so many requests fitted it in earlier lives
        self.rows: list[dict[str, Any]] = []
        self.dropped = 0
        self.brokers = 1
        self.is_set = False


class Watch:
    """One run. `schedule`: what is to happen; None: nothing, and all requests are to be told.

    told    called with the address of each cluster that is made.
    """

    def __init__(self, schedule: Schedule | None, told: Callable[[Address], None] = lambda address: None) -> None:
        self.schedule = schedule
        self.hits = [0] * len(schedule or ())
        self.outcomes: list[str] = [""] * len(schedule or ())
        self.left: list[str] = []
        self.shut_out = 0  # so many were made that are of a wider scope
        self.is_shut = False  # clusters that are made now are of a wider scope than the test
        self._told = told
        self._clusters: list[Cluster] = []

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All requests, by what they name, with the number of their `cluster`."""
        return [row for cluster in self._clusters for row in cluster.rows]

    @property
    def dropped(self) -> int:
        """So many bytes of requests had to make room before they could be told."""
        return sum(cluster.dropped for cluster in self._clusters)

    @property
    def brokers(self) -> int:
        """Of the cluster that has the fewest; 0: there was none."""
        return min((cluster.brokers for cluster in self._clusters), default=0)

    # -- what momus/kit/explored.py names

    def made(self, cluster: ClusterHandle) -> None:
        """Set what is to happen in it."""
        if self.is_shut:
            self.shut_out += 1
            return
        known = self._find(cluster)
        if known is None:
            known = Cluster(len(self._clusters) + 1, cluster)
            self._clusters.append(known)
        control = cluster.control
        known.address = Address(control.address, control.prefix, cluster.bootstrap_servers)
        known.brokers = len(cluster.bootstrap_servers.split(","))
        self._told(known.address)
        cluster._ask("POST", "/journal", {"bytes": JOURNAL_BYTES})
        self._set(known)

    def will_begin_again(self, cluster: ClusterHandle) -> None:
        """What its faults have met, and its journal, are about to go."""
        known = self._find(cluster)
        if known is not None and known.is_set:
            self._read(known)

    def began_again(self, cluster: ClusterHandle) -> None:
        """They are gone: go on from there."""
        known = self._find(cluster)
        if known is not None:
            self._set(known)

    def ends(self, cluster: ClusterHandle) -> None:
        """Read what has happened in it."""
        known = self._find(cluster)
        if known is None or not known.is_set:
            return
        self._read(known)
        steps = zip(self.schedule or (), self.outcomes, strict=True)
        unknown = any(step.kind == "make_event" and not outcome for step, outcome in steps)
        for event in cluster._ask("GET", "/made-events") if unknown else ():
            index = self._index(event["fault"])
            if index is not None:
                self.outcomes[index] = event["outcome"]
                self.hits[index] = max(1, self.hits[index])
        with suppress(NotOnUpstreamError):
            self.left += cluster._ask("GET", "/left-wrong")
        known.is_set = False

    # -- inside

    def _set(self, known: Cluster) -> None:
        known.is_set = True
        for index, step in enumerate(self.schedule or ()):
            passed = known.passed.get(index, 0)
            if step.cluster == known.number and not self.hits[index] and step.number > passed:
                known.of._ask("POST", "/faults", step.fault(f"{PREFIX}{index}", passed))

    def _read(self, known: Cluster) -> None:
        if self.schedule is None:
            told = known.of._ask("GET", "/journal/requests")
            known.rows += [{**row, "cluster": known.number} for row in told["requests"]]
            known.dropped += told["dropped"]
            return
        for fault in known.of._ask("GET", "/faults"):
            index = self._index(fault["name"])
            if index is not None:
                known.passed[index] = known.passed.get(index, 0) + fault["calls"]
                self.hits[index] += fault["hits"]
                self.outcomes[index] = fault.get("outcome", self.outcomes[index])

    def _find(self, cluster: ClusterHandle) -> Cluster | None:
        return next((each for each in self._clusters if each.of is cluster), None)

    @staticmethod
    def _index(name: str) -> int | None:
        return int(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None


def last_requests(address: Address, limit: int = 20) -> list[str]:
    """What a cluster was asked last, a line each; nothing if it does not answer."""
    from momus.control import Control  # there already

    control = Control(address.control)
    try:
        found: Any = control.ask("GET", f"{address.prefix}/journal/last?n={limit}")
        groups: Any = control.ask("GET", f"{address.prefix}/groups")
        lines = list(found["lines"])
        for group in groups["groups"]:
            told: Any = control.ask("GET", f"{address.prefix}/groups/{quoted(group['group'])}")
            lines.append(
                f"group {told['group']} is {told['state']}, with members {', '.join(told['members']) or 'none'}"
            )
        return lines
    except (OSError, RuntimeError, KeyError):
        return []
    finally:
        control.close()
