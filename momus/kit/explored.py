"""Who watches the clusters that a test makes, while it is explored (momus/explore); usually nothing does."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from momus.handle import ClusterHandle

    class Watch(Protocol):
        """What is told of each cluster."""

        def made(self, cluster: ClusterHandle) -> None:
            """It is there, or there again after a start, and nothing has been asked of it."""

        def begins_anew(self, cluster: ClusterHandle) -> None:
            """A reset, a restore or a recording is about to drop its faults and its journal."""

        def began_anew(self, cluster: ClusterHandle) -> None:
            """They are gone."""

        def ends(self, cluster: ClusterHandle) -> None:
            """It can be asked for the last time."""


watch: Watch | None = None
