"""Begins and ends to obey quotas, as the metadata has some or none any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.quotas.address_quotas import IP, AddressQuotas
from broker.quotas.client_quotas import ClientQuotas, window_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.partitions.fetch_session import FetchSessions
    from broker.turn.turn import Turn
    from broker.wire.clients import Clients
    from broker.wire.router import Router


def obey_quotas(
    turn: Turn,
    config: BrokerConfig,
    clients: Clients,
    router: Router,
    sessions: FetchSessions,
    metadata: Callable[[], ClusterMetadata],
) -> None:
    """Ask quotas from now on where there are some, of addresses and of clients; general handlers measure the latter."""
    quotas = metadata().clients.quotas
    if not any(entity[0][0] == IP for entity in quotas):
        clients.address_quotas = None
    elif clients.address_quotas is None:
        clients.address_quotas = AddressQuotas(lambda: metadata().clients.quotas, window_of(config))
    has_quotas = any(entity[0][0] != IP for entity in quotas)
    if has_quotas != (router.quotas is not None):
        router.quotas = ClientQuotas(turn, config, metadata, sessions) if has_quotas else None
        clients.disable_shortcuts("quotas", has_quotas)  # repeats that are served from their bytes measure nothing
