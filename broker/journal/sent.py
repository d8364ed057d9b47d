"""Finds commits of members that are above whatever their clients were sent: records that no one has read are done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from protocol.api import ApiKey
from protocol.record_batch import iter_batches

if TYPE_CHECKING:
    from broker.journal.reading import Entry

COMMITS: Final = (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT)
UNKNOWN: Final = 1 << 62  # how far a client was sent what is not kept whole
PartitionKey = tuple[str, int]
ANY: Final[PartitionKey] = ("", -1)


class Commit(NamedTuple):
    """The furthest that the members of a group have committed in a partition."""

    group: str
    topic: str
    partition: int
    offset: int
    sent: int  # their clients were sent the records below this


def above_what_was_sent(kept: Iterable[Entry], name_of: Callable[[bytes], str]) -> Iterator[Commit]:
    """Commits of the journal's entries. The journal must be whole: nothing may have made room.

    A client was sent what is below the offset from which it fetches, below the end of what a Fetch has answered, and
    below each offset that ListOffsets or OffsetFetch has told it. Clients are told apart by their client ids; of a
    group all count that have committed in it. Commits without a member, as tools make them, are no subject.
    """
    sent: dict[str, dict[PartitionKey, int]] = defaultdict(dict)
    clients: dict[str, set[str]] = defaultdict(set)
    committed: dict[tuple[str, PartitionKey], int] = {}
    for entry in kept:
        if entry.api_key in COMMITS:
            request: Any = entry.request()
            if request is None or not request.member_id:
                continue
            clients[request.group_id].add(entry.client_id)
            for topic, row in _rows(request.topics, name_of):
                key = request.group_id, (topic, row.partition_index)
                committed[key] = max(committed.get(key, 0), row.committed_offset)
        elif entry.api_key in _TOLD:
            told = sent[entry.client_id]
            for place, offset in _TOLD[entry.api_key](entry, name_of):
                told[place] = max(told.get(place, -1), offset)
    for (group, place), offset in sorted(committed.items()):
        of_clients = [sent[client] for client in clients[group]]
        known = [each[where] for each in of_clients for where in (place, ANY) if where in each]
        if known and offset > max(known):
            yield Commit(group, place[0], place[1], offset, max(0, *known))


def _rows(topics: Any, name_of: Callable[[bytes], str]) -> Iterator[tuple[str, Any]]:
    for topic in topics or ():
        name = getattr(topic, "topic", "") or getattr(topic, "name", "") or name_of(getattr(topic, "topic_id", b""))
        for row in topic.partitions:
            yield name, row


def _fetched(entry: Entry, name_of: Callable[[bytes], str]) -> Iterator[tuple[PartitionKey, int]]:
    request: Any = entry.request()
    for topic, row in _rows(request and request.topics, name_of):
        yield (topic, row.partition), row.fetch_offset
    response: Any = entry.response()
    if response is None:
        if request is None or entry.is_reply_cut:
            yield ANY, UNKNOWN
        return
    for topic, row in _rows(response.responses, name_of):
        for _, header in iter_batches(bytes(row.records or b"")):
            yield (topic, row.partition_index), header.next_offset


def _listed(entry: Entry, name_of: Callable[[bytes], str]) -> Iterator[tuple[PartitionKey, int]]:
    response: Any = entry.response()
    for topic, row in _rows(response and response.topics, name_of):
        yield (topic, row.partition_index), row.offset


def _committed_before(entry: Entry, name_of: Callable[[bytes], str]) -> Iterator[tuple[PartitionKey, int]]:
    response: Any = entry.response()
    for each in (response, *response.groups) if response is not None else ():
        for topic, row in _rows(each.topics, name_of):
            yield (topic, row.partition_index), row.committed_offset


_TOLD: Final = {ApiKey.FETCH: _fetched, ApiKey.LIST_OFFSETS: _listed, ApiKey.OFFSET_FETCH: _committed_before}
