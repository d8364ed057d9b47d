"""Who watches the clusters that a test makes, while it is explored (momus/explore); usually nothing does."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Watch(Protocol):
        """What is told of each cluster, a ClusterHandle."""

        def made(self, cluster: Any) -> None:
            """It is there, or there again after a start, and nothing has been asked of it."""

        def will_begin_again(self, cluster: Any) -> None:
            """A reset, a restore or a recording is about to drop its faults and its journal."""

        def began_again(self, cluster: Any) -> None:
            """They are gone."""

        def ends(self, cluster: Any) -> None:
            """It can be asked for the last time."""


watch: Watch | None = None
