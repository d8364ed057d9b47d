"""Who made a commit: the headers of its first record.

| header     | value                                     | left out when                 |
|------------|-------------------------------------------|-------------------------------|
| member     | member id, UTF-8                          | empty                         |
| instance   | group instance id, UTF-8                  | the member has none           |
| generation | generation or member epoch, int32         | negative: outside of a group  |
| client     | client id of the request's header, UTF-8  | null or empty                 |

Kafka's tools show the headers and its brokers ignore them. Replay uses them only for transactions, to record whose
offsets a transaction carried.

Beyond Kafka: a record of type 1000 in `__transaction_state` says whose offsets a transaction carried (the first draft
              of KIP-447). Kafka's tools skip it; `momus txn describe` shows it.
"""

from __future__ import annotations

from typing import Final

MEMBER: Final = "member"
INSTANCE: Final = "instance"
GENERATION: Final = "generation"
CLIENT: Final = "client"
HEADERS: Final = frozenset((MEMBER, INSTANCE, GENERATION, CLIENT))

Headers = tuple[tuple[str, bytes], ...]


def provenance(member_id: str, instance_id: str | None, generation: int, client_id: str | None) -> Headers:
    """The headers of one commit."""
    found = []
    if member_id:
        found.append((MEMBER, member_id.encode()))
    if instance_id is not None:
        found.append((INSTANCE, instance_id.encode()))
    if generation >= 0:
        found.append((GENERATION, generation.to_bytes(4, "big")))
    if client_id:
        found.append((CLIENT, client_id.encode()))
    return tuple(found)
