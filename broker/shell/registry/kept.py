"""Keeps the answers to what is only read, as bytes, for the same request while nothing that they come from has changed.

They come from the records of `_schemas`, and from who asks and what the cluster's metadata allows. So all are dropped
where the topic or its high watermark is another one, where the cluster has begun another life, and where the generation
of what shortcuts have learnt has moved, as it does with each change of the metadata: users and ACLs are part of it.
While the cluster has faults, or keeps a journal, each request has to be looked at, and nothing is taken from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.control.http_door import Door
    from broker.shell.registry.store import Store

KEPT_BYTES: Final = 4 << 20  # of requests and answers
LONGEST: Final = 64 << 10  # of a request and its answer

Origin = tuple[object, ...]


class Kept:
    """The answers of one registry."""

    def __init__(self, cluster: ClusterServer, store: Store) -> None:
        self._cluster = cluster
        self._store = store
        self._origin: Origin | None = None  # what the answers come from
        self._answers: dict[tuple[object, bytes], tuple[bytes, ...]] = {}
        self._bytes = 0

    def origin(self) -> Origin | None:
        """What an answer that is made now comes from; None: it is not to be kept."""
        broker = self._cluster.broker
        if broker.has_faults or broker.clients.journal is not None or not self._store.is_read:
            return None
        return *self._store.position, broker.turn.learned.generation

    def find(self, door: Door, request: bytes) -> tuple[bytes, ...] | None:
        """The parts of a response to a request that was made over such a connection; None: it has to be made."""
        if self.origin() != self._origin:
            return None
        return self._answers.get((_who(door), request))

    def keep(self, door: Door, request: bytes, parts: tuple[bytes, ...], origin: Origin | None) -> None:
        """Keep the parts of a response, between which an id is new each time.

        origin   what it comes from, asked before it was made.
        """
        size = len(request) + sum(map(len, parts))
        if origin is None or origin != self.origin() or size > LONGEST:
            return
        if origin != self._origin or self._bytes + size > KEPT_BYTES:
            self._origin, self._bytes = origin, 0
            self._answers.clear()
        self._bytes += size
        self._answers[_who(door), request] = parts


def _who(door: Door) -> object:
    """What a connection says of its client, beside what is in its requests: address and certificate."""
    if door.who is None:
        peer, tls = (door.transport.get_extra_info(name) for name in ("peername", "ssl_object"))
        door.who = (peer and peer[0], tls and tls.getpeercert(binary_form=True))
    return door.who
