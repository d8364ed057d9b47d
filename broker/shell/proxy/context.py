"""What stands around a proxy's connections: a Broker without clients' data, whose router sends requests on.

It is made of the broker's own parts: security of listeners, faults, journal, metrics. No request of a client comes to
its handlers but those of SASL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from broker.broker import Broker
from broker.proxy.router import ProxyRouter

if TYPE_CHECKING:
    from broker.faults.table import FaultTable


class ProxyBroker(Broker):
    """The parts of a proxy."""

    router_class = ProxyRouter

    def _fault_table(self) -> type[FaultTable]:
        from broker.proxy.faults import ProxyFaults  # 6 ms: most proxies have none

        return ProxyFaults

    @property
    def topics_by_id(self) -> Mapping[bytes, Any]:
        """What has a `name`, by topic id, as answers that passed have told."""
        router: Any = self.router
        names: Mapping[bytes, Any] = router.addresses.topics_by_id
        return names
