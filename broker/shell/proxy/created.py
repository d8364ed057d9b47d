"""What a run of tests has created in the upstream cluster, kept on disk, so that it is removed if the run was killed.

A topic is on the list once an answer to CreateTopics has told its id, and is removed by that id. Names that the kit has
given end with the run's own: a group of such a name is removed by it, a topic of such a name that is not on the list,
because a request for it has created it, is told of and stays. What the cluster refuses to remove stays on the list: the
next run tries it again, and so do those that follow it.

    FOLDER/RUN/lock          held while the run lives
    FOLDER/RUN/topics.json   id -> name, and the id of the cluster
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from broker.asks import groups
from broker.asks import topics as topic_asks
from broker.asks.ask import AnswerError, label
from broker.config.addresses import host_port
from protocol.errors import ErrorCode, MalformedError
from storage.files.errors import LockedError

if TYPE_CHECKING:
    from broker.shell.proxy.upstream import Upstream
    from storage.files.env import SystemFiles
    from storage.files.lock import FileLock

log = logging.getLogger("momus.proxy")

LIST: Final = "topics.json"
GONE: Final = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
NO_GROUP: Final = (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)
UNREACHED: Final = (OSError, TimeoutError, MalformedError, AnswerError)


class Removal:
    """What was removed of a run, and what was not. `is_done`: nothing is left that another try could remove."""

    def __init__(self) -> None:
        self.removed: list[str] = []
        self.left: list[str] = []
        self.is_done = True

    def failed(self, what: str, why: int | Exception) -> None:
        """Something stays on the list. `why`: an error code, or what happened."""
        reason = label(why) if isinstance(why, int) else str(why) or type(why).__name__
        self.left.append(f"{what}: {reason}")
        self.is_done = False


class Created:
    """The list of one run.

    place    FOLDER/RUN. A proxy that was killed and starts again goes on with its list.
    Errors:  OSError, LockedError.
    """

    def __init__(self, disk: SystemFiles, place: str, upstream: Upstream) -> None:
        self._disk = disk
        self._folder, _, self.run = place.rpartition("/")
        self._upstream = upstream
        self._topics: dict[str, str] = {}  # id in hexadecimal -> name
        self._left_of_dead: list[str] = []
        self._is_done = False
        disk.makedirs(place)
        self._lock: FileLock = disk.lock(f"{place}/lock")
        if disk.exists(f"{place}/{LIST}"):
            self._topics = json.loads(disk.read_file(f"{place}/{LIST}"))["topics"]
        self._write(self.run, self._topics)  # at once: groups alone may follow

    def answered(self, response: Any) -> None:
        """A CreateTopics was answered."""
        made = {row.topic_id.hex(): row.name for row in response.topics if not row.error_code and any(row.topic_id)}
        if made:
            self._topics |= made
            self._is_done = False
            self._write(self.run, self._topics)

    def _write(self, run: str, topics: dict[str, str]) -> None:
        text = json.dumps({"cluster": self._upstream.cluster_id, "topics": topics})
        self._disk.write_file_atomic(f"{self._folder}/{run}/{LIST}", text.encode())

    async def remove(self) -> dict[str, list[str]]:
        """Remove what the run has created. Returns names: `removed`, and `left`, with why; also what killed runs have
        left and what could not be removed when this one began. Errors: OSError."""
        found = await self._remove(self.run, self._topics)
        self._write(self.run, self._topics)
        self._is_done = found.is_done
        return {"removed": found.removed, "left": found.left + self._left_of_dead}

    def close(self) -> None:
        """The run is over: its list is not needed any more, unless something is to be removed yet."""
        self._lock.release()
        if self._is_done:
            self._disk.remove_tree(f"{self._folder}/{self.run}")

    async def remove_of_dead(self) -> None:
        """Remove what runs that were killed, or could not remove all, have left in this cluster."""
        for run in self._disk.listdir(self._folder):
            if run == self.run:
                continue
            try:
                lock = self._disk.lock(f"{self._folder}/{run}/lock")
            except (LockedError, OSError):  # it lives, or has just ended
                continue
            try:
                await self._work_off(run)
            except (OSError, ValueError) as error:
                log.warning("the list of run %s cannot be read or kept: %s", run, error)
            finally:
                lock.release()

    async def _work_off(self, run: str) -> None:
        path = f"{self._folder}/{run}/{LIST}"
        kept = json.loads(self._disk.read_file(path)) if self._disk.exists(path) else {}
        if kept.get("cluster", self._upstream.cluster_id) != self._upstream.cluster_id:
            return
        topics = kept.get("topics", {})
        found = await self._remove(run, topics)
        log.warning("run %s did not remove all; removed %s", run, ", ".join(found.removed) or "nothing")
        if found.is_done:
            self._disk.remove_tree(f"{self._folder}/{run}")
        else:
            log.warning("of run %s is left: %s", run, ", ".join(found.left))
            self._write(run, topics)
        self._left_of_dead += [f"{each} (of run {run})" for each in found.left]

    async def _remove(self, run: str, topics: dict[str, str]) -> Removal:
        """Try to remove all; `topics` are afterwards those that are there still."""
        found = Removal()
        try:
            await self._remove_topics(topics, found)
            for row in (await self._upstream.answer(topic_asks.metadata(None))).topics:
                if (row.name or "").endswith(f"-{run}") and row.topic_id.hex() not in topics:
                    found.left.append(f"topic {row.name}: made by a request for it, not by this run's own words")
        except UNREACHED as error:
            found.failed(f"topics {', '.join(topics.values())}", error)
        for node_id, place in list(self._upstream.places.items()):
            try:
                await self._remove_groups(node_id, run, found)
            except UNREACHED as error:
                found.failed(f"groups at {host_port(*place)}", error)
        return found

    async def _remove_topics(self, topics: dict[str, str], found: Removal) -> None:
        if not topics:
            return
        wanted = topic_asks.delete(ids=[bytes.fromhex(topic_id) for topic_id in topics])
        for row in await self._upstream.answer(wanted):
            topic_id = row.topic_id.hex()
            if topic_id not in topics:
                continue
            if row.error_code in GONE:
                found.removed.append(f"topic {topics.pop(topic_id)}")
            else:
                found.failed(f"topic {topics[topic_id]}", row.error_code)

    async def _remove_groups(self, node_id: int, run: str, found: Removal) -> None:
        """Remove the groups that a node coordinates."""
        for each in await self._upstream.answer(groups.listed_at(node_id)):
            if each.group.endswith(f"-{run}"):
                row = await self._upstream.answer(groups.delete(each.group))
                if row.error_code in NO_GROUP:
                    found.removed.append(f"group {each.group}")
                else:
                    found.failed(f"group {each.group}", row.error_code)
