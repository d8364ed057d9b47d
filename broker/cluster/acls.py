"""ACLs: a part of the metadata's state, with what Kafka's StandardAuthorizer finds in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from broker.cluster.host_ranges import is_within
from protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    encode_record,
)

ANY_PATTERN, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
ANY: Final = 1  # of resource types, operations and permissions in filters
ALL: Final = 2  # every operation
DENY, ALLOW = 2, 3
# Operations, resource types, and the name of the one resource of type CLUSTER.
READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, CREATE_TOKENS, DESCRIBE_TOKENS, TWO_PHASE_COMMIT = range(10, 16)
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 2, 3, 4, 5, 6, 7
CLUSTER_NAME: Final = "kafka-cluster"
WILDCARD: Final = "*"
EVERYBODY: Final = "User:*"


class Acl(NamedTuple):
    """A rule; numbers are those of Kafka's protocol."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def covers(self, name: str) -> bool:
        """Whether it is about a resource of this name."""
        if self.pattern_type == PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)

    def concerns(self, principal: str, host: str, *, with_ranges: bool) -> bool:
        """Whether it is about this client. Its host is an address, a range of them, or "*"."""
        if self.principal not in (principal, EVERYBODY):
            return False
        return self.host in (host, WILDCARD) or ("/" in self.host and with_ranges and is_within(host, self.host))


class AclFilter(NamedTuple):
    """What ACLs are looked for; None and ANY match all."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def matches(self, acl: Acl) -> bool:
        """Source: Kafka's ResourcePatternFilter and AccessControlEntryFilter."""
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission_type in (ANY, acl.permission_type)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (ANY_PATTERN, MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        return acl.covers(self.resource_name) if self.pattern_type == MATCH else acl.resource_name == self.resource_name


class Acls:
    """All ACLs of a cluster, by id, and by resource."""

    __slots__ = ("_places", "by_id", "replays")

    VOLATILE: ClassVar[Mapping[str, str]] = {
        "_places": "the same ACLs, by what they are about",
        "replays": "the same for every state",
    }

    def __init__(self) -> None:
        self.by_id: dict[bytes, Acl] = {}
        self._places: dict[tuple[int, int, str], list[Acl]] = {}  # by type, kind of pattern and name
        self.replays: dict[type, Callable[[Any], None]] = {
            AccessControlEntryRecord: self._replay_acl,
            RemoveAccessControlEntryRecord: self._replay_acl_gone,
        }

    def __len__(self) -> int:
        return len(self.by_id)

    def about(self, resource_type: int, name: str) -> Iterator[Acl]:
        """The ACLs that cover a resource."""
        places = self._places
        if not places:
            return
        yield from places.get((resource_type, LITERAL, name), ())
        if name != WILDCARD:
            yield from places.get((resource_type, LITERAL, WILDCARD), ())
        for end in range(len(name) + 1):
            yield from places.get((resource_type, PREFIXED, name[:end]), ())

    def _replay_acl(self, record: AccessControlEntryRecord) -> None:
        acl = Acl(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        self.by_id[record.id] = acl
        self._places.setdefault((acl.resource_type, acl.pattern_type, acl.resource_name), []).append(acl)

    def _replay_acl_gone(self, record: RemoveAccessControlEntryRecord) -> None:
        acl = self.by_id.pop(record.id)
        place = acl.resource_type, acl.pattern_type, acl.resource_name
        self._places[place].remove(acl)
        if not self._places[place]:
            del self._places[place]

    def image_records(self) -> Iterator[bytes]:
        """The state as records."""
        for acl_id, acl in self.by_id.items():
            yield acl_record(acl_id, acl)


def acl_record(acl_id: bytes, acl: Acl) -> bytes:
    """One ACL as a record."""
    return encode_record(AccessControlEntryRecord(id=acl_id, **acl._asdict()), 0)
