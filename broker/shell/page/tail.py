"""The newest requests in the journal, found without going through all of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from broker.shell.page.windows import slices

if TYPE_CHECKING:
    from broker.journal.reading import Entry
    from broker.journal.ring import Ring
    from broker.shell.cluster_server import ClusterServer


async def newest(cluster: ClusterServer, ring: Ring, most: int, since: int = -1) -> list[Entry]:
    """Requests of the newest `most` pieces, oldest first; `since`: only of pieces with this number or a later one."""
    from broker.journal.reading import Pairs  # 5 ms: most brokers keep no journal

    pieces = [piece for piece in islice(reversed(ring.pieces), most) if piece.number >= since]
    pairs = Pairs()
    async for piece in slices(cluster, reversed(pieces)):
        pairs.add(piece)
    return pairs.found


def topic_name(cluster: ClusterServer) -> Callable[[bytes], str]:
    """Finds the name of a topic id; "" for one that is not there."""
    topics = cluster.broker.metadata.topics_by_id
    return lambda topic_id: topics[topic_id].name if topic_id in topics else ""
