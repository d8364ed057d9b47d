"""The faults of a proxy: those that meet requests and replies. It cannot reach what is inside a broker.

The partitions of a fetch session are named once, by the request that begins it or changes it. So while a fault has a
filter for topics, Fetch and ShareFetch are read; a session that began before that is asked to begin again, by the error
with which a broker says that it has forgotten it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from broker.faults.errors import NotHereError
from broker.faults.table import FaultTable
from broker.proxy.sessions import Sessions, UnknownSessionError
from broker.wire.route import encode_reply
from protocol.api import ApiKey, api_label, response_class
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.faults.fault import Fault
    from broker.faults.named import Named
    from broker.wire.connection import Connection

log = logging.getLogger("momus.proxy")

NOT_HERE: Final = "the proxy has neither the disk nor the dead letters nor the registry of the upstream cluster"
FORGOTTEN: Final = {
    int(ApiKey.FETCH): ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    int(ApiKey.SHARE_FETCH): ErrorCode.SHARE_SESSION_NOT_FOUND,
}


class ProxyFaults(FaultTable):
    """All faults of a proxy."""

    _router: Any  # a ProxyRouter

    def add(self, data: Any) -> Fault:
        """Set a fault, which acts from the next request on. Errors: FaultError, NotHereError."""
        fault = super().add(data)
        if not fault.meets_requests:
            super().remove(fault.name)
            raise NotHereError(f"{fault.kind.name} acts inside a broker: {NOT_HERE}")
        unknown = [api_label(key) for key in fault.apis if key not in self._router.routes]
        if fault.code is not None and unknown:
            super().remove(fault.name)
            raise NotHereError(f"inject_error cannot answer {', '.join(unknown)}: the proxy writes no such replies")
        if _reads_sessions(fault) and self._router.sessions is None:
            self._router.sessions = Sessions()
        return fault

    def remove(self, name: str) -> Fault:
        """Take a fault away. Errors: KeyError."""
        fault = super().remove(name)
        self._router.is_careful = any(each.meets_requests for each in self.all())
        if not any(_reads_sessions(each) for each in self.all()):
            self._router.sessions = None  # what changes from now on is not seen
        return fault

    def _install(self) -> None:
        super()._install()
        self._router.is_careful = True

    def dispatch(
        self,
        connection: Connection,
        data: bytes,
        position: int,
        stop: int,
        api_key: int,
        api_version: int,
        correlation_id: int,
    ) -> None:
        """Serve one frame, unless a fault acts on it."""
        try:
            super().dispatch(connection, data, position, stop, api_key, api_version, correlation_id)
        except UnknownSessionError:
            route = self._router.routes[api_key]
            response = response_class(api_key)(error_code=FORGOTTEN[api_key])
            slot = connection.next_slot
            connection.out.append(None)
            connection.fill(slot, encode_reply(route, api_version, correlation_id, response))
            self._turn.durability.speaks(connection)

    def refuse(self, fault: Fault, connection: Connection, frame: bytes) -> None:
        """Answer with the fault's error; where no such answer can be written, close the connection: as an error of the
        proxy, the request does not reach the cluster."""
        api_key, version = int.from_bytes(frame[4:6], "big", signed=True), int.from_bytes(frame[6:8], "big")
        route = self._router.routes.get(api_key)
        if route is not None and route.min_version <= version <= route.max_version:
            super().refuse(fault, connection, frame)
            return
        self._acts(fault, connection, frame)
        what = f"{api_label(api_key)} v{version}"
        log.warning("%s refuses %s: the connection is closed, for the proxy cannot write its answer", fault.name, what)
        connection.refuse(f"{fault.name} refuses {what}, whose answer the proxy cannot write")

    def _with_session(self, named: Named, connection: Connection, request: Any, api_key: int) -> Named:
        if api_key in FORGOTTEN and self._router.sessions is not None:
            for topic, topic_id, index in self._router.sessions.partitions_of(connection, request, api_key):
                named.add(topic or self._topic_name(topic_id), index)
        return named

    def _topic_name(self, topic_id: bytes) -> str:
        name: str = self._router.addresses.name_of(topic_id)
        return name

    def disconnected(self, connection: Connection) -> None:
        """A connection is closed."""
        super().disconnected(connection)
        if self._router.sessions is not None:
            self._router.sessions.disconnected(connection)


def _reads_sessions(fault: Fault) -> bool:
    """Whether it must know what a session reads."""
    return ("topic" in fault.filters or "partition" in fault.filters) and (
        not fault.apis or any(key in FORGOTTEN for key in fault.apis)
    )
