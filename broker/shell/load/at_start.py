"""What a start is told to load: files, and the topics of a variable. Read before the cluster is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.load.create_topics import VARIABLE, topics_of
from broker.load.sources import read_value
from broker.shell.load.disk import read_paths
from broker.shell.load.start import create_topics, load_at_start

if TYPE_CHECKING:
    from broker.load.items import Load
    from broker.shell.cluster_server import ClusterServer


class StartLoads:
    """All of it.

    paths           files and folders.
    value           what a file would say, instead.
    if_present      fail or skip.
    create_topics   KAFKA_CREATE_TOPICS, and `separator` what is between its topics.
    Errors:         LoadError.
    """

    def __init__(
        self,
        *,
        paths: list[str] | None = None,
        value: object = None,
        if_present: str = "fail",
        create_topics: str = "",
        separator: str | None = None,
    ) -> None:
        self._if_present = if_present
        self._load: Load | None = None
        if paths:
            self._load = read_paths(paths)
        elif value is not None:
            self._load = read_value("load", value)
        self._topics = read_value(VARIABLE, topics_of(create_topics, separator)) if create_topics else None

    @property
    def moves_clock(self) -> bool:
        """Whether the cluster needs a clock that can be moved."""
        return self._load is not None and self._load.clock is not None

    async def fill(self, cluster: ClusterServer) -> None:
        """Load it. Errors: LoadError, LoadFailedError, OSError."""
        if self._load is not None and self._load.files:
            await load_at_start(cluster, self._load, self._if_present)
        if self._topics is not None:
            await create_topics(cluster, self._topics)
