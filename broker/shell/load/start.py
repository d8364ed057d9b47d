"""Fills a cluster at its start, before it listens: what its data directory has already is not loaded again.

A mark in the data directory says what was begun and what is complete, by a digest of all files. A start that finds a
load begun goes on where the process was killed: until it is complete no client is served, so where a partition ends
says what is in it. Faults and the clock are kept by no directory: each start sets them.

mark         what a start does
none         checks, writes "begun", loads, writes "done"
done         says so, and sets faults and clock
begun        loads the rest
another one  as none; what is there already is named, and that the files have changed
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from broker.cluster.data.copies import LOADED
from broker.load.items import Load
from broker.load.problems import LoadError, LoadFailedError
from broker.shell.control.routes import RefusedError
from broker.shell.load.filling import Filling

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.load.present import Present

logger = logging.getLogger("momus.load")

BEGUN, DONE = "begun", "done"
FORMAT: Final = 1


class Mark:
    """The file in a cluster's data directory. Errors: OSError."""

    def __init__(self, cluster: ClusterServer) -> None:
        self._files = cluster.broker.turn.env.files
        self._path = f"{cluster.plan.data_dir}/{LOADED}"
        self._syncs = cluster.plan.flush == "fsync"

    def read(self) -> dict[str, Any] | None:
        """What it says; None: nothing was loaded, or what it says cannot be read."""
        if not self._files.exists(self._path):
            return None
        try:
            found = json.loads(self._files.read_file(self._path))
            return found if found.get("format") == FORMAT else None
        except (ValueError, AttributeError):
            logger.warning("%s cannot be read: it is passed over", self._path)
            return None

    def write(self, load: Load, state: str, present: Present) -> None:
        """Say what was begun, or is complete."""
        said = {"format": FORMAT, "state": state, "digest": load.digest, "files": load.files, "present": present}
        self._files.write_file_atomic(self._path, json.dumps(said, indent=1).encode(), self._syncs)


async def load_at_start(cluster: ClusterServer, load: Load, if_present: str) -> None:
    """Load what is not there yet. Errors: LoadError: nothing was loaded. LoadFailedError, OSError: some of it was."""
    mark = Mark(cluster)
    said = mark.read()
    is_same = said is not None and said["digest"] == load.digest
    if said is not None and is_same and said["state"] == DONE:
        await _again(cluster, load)
        return
    is_begun = said is not None and said["state"] == BEGUN
    if is_begun and not is_same:
        _refuse_changed(load, if_present)
    elif said is not None and not is_same:
        logger.warning("%s: what was loaded in this directory before was another text", load.name)
    is_resumed = is_begun and is_same
    if is_resumed:
        logger.warning("%s: an earlier start was cut off while it loaded this; the rest is loaded", load.name)
    filling = Filling(cluster, load, is_resumed=is_resumed, present=said["present"] if is_resumed and said else None)
    try:
        done = await filling.run(if_present, lambda present: mark.write(load, BEGUN, present))
    except LoadError as error:
        if said is not None and not is_same:
            why = load.topics[0].where if load.topics else None
            note = "the file has changed since it was loaded in this directory; nothing of it is loaded now"
            raise LoadError([*error.problems, *([why.problem(note)] if why is not None else [])]) from None
        raise
    except RefusedError as error:
        raise LoadFailedError(f"{load.name}: {error}; {_so_far(filling)}; the next start loads the rest") from None
    mark.write(load, DONE, filling.present)
    logger.info("%s: loaded %s", load.name, in_words(done))


def _refuse_changed(load: Load, if_present: str) -> None:
    """Errors: LoadError: what was begun is another text, and what is there of it cannot be gone on with."""
    why = "an earlier start was cut off while it loaded another text, and what it has loaded is not complete"
    if if_present == "fail":
        first = next((item.where for items in (load.topics, load.groups, load.users) for item in items), None)
        todo = "begin with an empty directory, put the text back, or give --load-if-present skip"
        problem = None if first is None else first.text.problem((), f"{why}: {todo}")
        raise LoadError([] if problem is None else [problem])
    logger.warning("%s: %s: it stays as it is", load.name, why)


async def _again(cluster: ClusterServer, load: Load) -> None:
    """All is there already, but what no directory keeps."""
    logger.warning("%s: loaded in this directory already, and not loaded again", load.name)
    if load.faults or load.clock is not None:
        rest = Load()
        rest.files, rest.faults, rest.clock = load.files, load.faults, load.clock
        await Filling(cluster, rest).run("fail")
        logger.info("%s: its faults and its clock are set, which no directory keeps", load.name)


async def create_topics(cluster: ClusterServer, load: Load) -> None:
    """Make the topics of a variable that are not there. Errors: LoadError, LoadFailedError, OSError."""
    filling = Filling(cluster, load)
    try:
        done = await filling.run("skip")
    except RefusedError as error:
        raise LoadFailedError(f"{load.name}: {error}") from None
    there = filling.present["topic"]
    logger.info("%s: made %s%s", load.name, in_words(done), f"; there already: {', '.join(there)}" if there else "")


def _so_far(filling: Filling) -> str:
    return f"loaded so far: {in_words({what: number for what, number in filling.counts.items() if number})}"


def in_words(done: dict[str, int]) -> str:
    """Topics: 2, records: 10."""
    return ", ".join(f"{what}: {number}" for what, number in done.items()) or "nothing new"
