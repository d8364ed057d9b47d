"""Tells each request of the journal by what it names, in a row: for whoever has to find requests that are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from broker.faults.named import Named, named_in
from broker.journal.reading import Entry, SessionTopics, error_names
from protocol.api import ApiKey

if TYPE_CHECKING:
    from broker.asks.request_rows import RequestRow
    from broker.journal.ring import Ring

_PRODUCER: Final = Struct(">q")
_PRODUCER_AT: Final = 43  # in a record batch


def rows(
    kept: Iterable[Entry], ring: Ring, name_of: Callable[[bytes], str], session_topics: SessionTopics
) -> Iterator[RequestRow]:
    """Those of `kept`, the entries of the ring, that clients have sent. `session_topics`: what a fetch session reads
    beside what it names."""
    for entry in kept:
        if entry.api_key >= 0 and entry.peer.address:
            yield _row(entry, ring, name_of, session_topics)


def _row(entry: Entry, ring: Ring, name_of: Callable[[bytes], str], session_topics: SessionTopics) -> RequestRow:
    request: Any = entry.request()
    named = Named() if request is None else named_in(request, name_of)
    topics = named.topics | (session_topics(entry) or frozenset())
    return {
        "number": entry.number,
        "at_ms": entry.at_ms,
        "latency_ms": entry.latency_us / 1000 if entry.latency_us >= 0 else -1.0,
        "api": entry.api,
        "version": entry.api_version,
        "client_id": entry.client_id,
        "connection": entry.peer.address,
        "broker": entry.peer.broker,
        "groups": sorted(named.groups),
        "topics": sorted(topics - {""}),
        "transactional_ids": sorted(named.transactional_ids),
        "member": member_of(request),
        "producer_id": _producer_id(request) if entry.api_key == ApiKey.PRODUCE else -1,
        "errors": error_names(entry.response()),
        "fault": str(ring.notes(entry.peer, entry.correlation_id).get("fault", "")),
        "known": request is not None,
    }


def member_of(request: Any) -> str:
    """The id of the member that sends a request; "": of none."""
    own = getattr(request, "member_id", None)
    if isinstance(own, str) and own:
        return own
    for listed in ("groups", "members"):  # OffsetFetch from v9 on, LeaveGroup from v3 on
        for each in getattr(request, listed, None) or ():
            found = getattr(each, "member_id", None)
            if isinstance(found, str) and found:
                return found
    return ""


def _producer_id(request: Any) -> int:
    for topic in getattr(request, "topic_data", None) or ():
        for partition in topic.partition_data:
            records = partition.records
            if records is not None and len(records) >= _PRODUCER_AT + _PRODUCER.size:
                return int(_PRODUCER.unpack_from(records, _PRODUCER_AT)[0])
    return -1
