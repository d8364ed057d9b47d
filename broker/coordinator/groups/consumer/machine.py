"""What a consumer group needs of the state machine that holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig


class Machine(Protocol):
    """The groups of one machine, their settings, and the topics of the cluster."""

    config: BrokerConfig
    askers: dict[str, Any]  # group -> what the client may do for whom its expressions are resolved next

    @property
    def groups(self) -> Mapping[str, Any]:
        """Groups of every kind, by group id."""

    @property
    def metadata(self) -> ClusterMetadata:
        """The topics of the cluster."""

    def group_value(self, group_id: str, key: str) -> Any:
        """A setting of the group, or the broker's if the group has none of its own."""
