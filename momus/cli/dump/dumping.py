"""Asks a cluster for what a file of `--load` may say, by Kafka's protocol, and notes what cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from broker.load.fields import DEFAULT_ENTITY
from broker.shell.control.calls.acls import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES
from momus.cli.dump.values import masked, shown, shown_headers
from momus.cli.records.client import RecordClient
from momus.cli.records.text import In
from momus.client.kafka_client import EARLIEST, LATEST, RequestFailedError, Row, acls, quotas
from momus.client.kafka_client import _check as check
from protocol.errors import ErrorCode
from protocol.messages.scram import DescribeUserScramCredentialsRequest

APPEND_TIME = "LogAppendTime"
ACL_ORDER = ("principal", "resource", "name", "operation", "permission", "host", "pattern")


class Wanted(NamedTuple):
    """What is to be read. topics, groups: patterns; none: all. most_records: of each partition, the newest."""

    topics: tuple[str, ...]
    groups: tuple[str, ...]
    since_ms: int | None
    most_records: int | None
    masks_values: bool


class Dumper:
    """One dump. `notes`: what was not read, and what is otherwise in a copy."""

    def __init__(self, client: RecordClient, wanted: Wanted) -> None:
        self._client = client
        self._wanted = wanted
        self.notes: list[str] = []
        self._offsets: dict[tuple[str, int], list[int]] = {}  # of the records that were read, in order
        self._ends: dict[tuple[str, int], int] = {}

    def document(self) -> dict[str, Any]:
        """The whole. Errors: OSError, ValueError: there is no such topic or group."""
        names = [row["name"] for row in self._client.topics() if not row["internal"]]
        groups = [row for row in self._client.groups() if row["type"] != "share"]
        chosen = _chosen(names, self._wanted.topics, "topic")
        parts: dict[str, list[Any]] = {"topics": [self._topic(name) for name in chosen]}
        known = [str(row["group"]) for row in groups]
        parts["groups"] = [
            found for name in _chosen(known, self._wanted.groups, "group") if (found := self._group(name))
        ]
        if not self._wanted.topics and not self._wanted.groups:
            self._note_share_groups()
            parts["users"] = self._asked("users", self._users)
            parts["acls"] = self._asked("ACLs", self._acls)
            parts["quotas"] = self._asked("quotas", self._quotas)
        parts["not_dumped"] = self.notes
        return {name: rows for name, rows in parts.items() if rows or name == "topics"}

    # -- topics

    def _topic(self, name: str) -> Row:
        (described,) = self._client.describe_topics([name])
        row: Row = {"name": name, "partitions": len(described["partitions"])}
        configs = described["configs"]
        hidden = sorted(key for key, value in configs.items() if value is None)
        if hidden:
            self.notes.append(f"topic {name}: settings that the broker does not show: {', '.join(hidden)}")
        config = {key: value for key, value in sorted(configs.items()) if value is not None}
        if config:
            row["config"] = config
        is_append = config.get("message.timestamp.type") == APPEND_TIME
        records = self._records(name, has_time=not is_append)
        if is_append and records:
            self.notes.append(f"topic {name}: times of records, which its message.timestamp.type makes new in a copy")
        if records:
            row["records"] = records
        return row

    def _records(self, name: str, *, has_time: bool) -> list[Row]:
        client, wanted = self._client, self._wanted
        leaders = client.leaders_made(name, create=False)
        first, ends = client.offsets_at(name, leaders, EARLIEST), client.offsets_at(name, leaders, LATEST)
        starts = dict(first)
        if wanted.since_ms is not None:
            since = client.offsets_at(name, leaders, wanted.since_ms)
            starts = {each: ends[each] if offset < 0 else offset for each, offset in since.items()}
        if wanted.most_records is not None:
            starts = {each: max(start, ends[each] - wanted.most_records) for each, start in starts.items()}
        positions, by_partition = dict(starts), dict[int, list[Row]]()
        for record in client.read(name, positions, ends, committed=True, until_end=True, idle_s=None):
            by_partition.setdefault(record.partition, []).append(self._record(record, has_time=has_time))
            self._offsets.setdefault((name, record.partition), []).append(record.offset)
        for partition in sorted(leaders):
            self._ends[(name, partition)] = ends[partition]
            self._note_offsets(f"{name}-{partition}", first[partition], positions[partition], ends[partition])
            self._note_gaps(name, partition, starts[partition], positions[partition])
        return [row for _, rows in sorted(by_partition.items()) for row in rows]

    def _note_offsets(self, place: str, first: int, position: int, end: int) -> None:
        if first:
            why = "in a copy at 0, and committed offsets count from there"
            self.notes.append(f"{place}: it begins at offset {first}, {why}")
        if position < end:
            self.notes.append(f"{place}: records from offset {position} on, of a transaction that is open")

    def _note_gaps(self, name: str, partition: int, start: int, position: int) -> None:
        gaps = position - start - len(self._offsets.get((name, partition), ()))
        if gaps > 0:
            why = "compacted away, markers of transactions, or aborted"
            self.notes.append(f"{name}-{partition}: {gaps} offsets that hold no record to read ({why})")

    def _record(self, record: In, *, has_time: bool) -> Row:
        value = shown(record.value)
        row: Row = {"partition": record.partition}
        if record.key is not None:
            row["key"] = shown(record.key)
        row["value"] = masked(value) if self._wanted.masks_values else value
        if record.headers:
            row["headers"] = shown_headers(record.headers, is_masked=self._wanted.masks_values)
        if has_time and record.timestamp_ms >= 0:
            row["timestamp"] = record.timestamp_ms
        return row

    # -- groups

    def _group(self, name: str) -> Row | None:
        try:
            committed = self._client.committed_offsets(name)
        except RequestFailedError as error:
            self.notes.append(f"group {name}: {error}")
            return None
        offsets, lost = [], set()
        for row in sorted(committed, key=lambda row: (row["topic"], row["partition"])):
            place = (row["topic"], row["partition"])
            if row["offset"] < 0:
                continue
            if place not in self._ends:
                lost.add(row["topic"])
                continue
            offset: Row = {"topic": place[0], "partition": place[1], "offset": self._moved(place, row["offset"])}
            offsets.append({**offset, "metadata": row["metadata"]} if row["metadata"] else offset)
        if lost:
            self.notes.append(f"group {name}: offsets of topics that are not dumped: {', '.join(sorted(lost))}")
        return {"name": name, "offsets": offsets} if offsets else None

    def _moved(self, place: tuple[str, int], offset: int) -> int:
        """Where a committed offset is in a copy: after as many records as were read before it."""
        read, end = self._offsets.get(place, []), self._ends[place]
        if offset >= end:
            return len(read) + offset - end
        return sum(1 for each in read if each < offset)

    def _note_share_groups(self) -> None:
        names = [str(row["group"]) for row in self._client.groups() if row["type"] == "share"]
        if names:
            self.notes.append(f"start offsets of share groups: {', '.join(names)}")

    # -- users, ACLs, quotas

    def _asked(self, what: str, ask: Callable[[], list[Row]]) -> list[Row]:
        """What is asked; nothing, and a note, where the broker refuses."""
        try:
            return ask()
        except RequestFailedError as error:
            if error.code != ErrorCode.SECURITY_DISABLED:
                self.notes.append(f"{what}: {error}")
        except OSError as error:
            if "does not offer" not in str(error):
                raise
            self.notes.append(f"{what}: {error}")
        return []

    def _users(self) -> list[Row]:
        answer = self._client._call(None, DescribeUserScramCredentialsRequest(users=None))
        check("users", answer.error_code, answer.error_message)
        names = sorted(row.user for row in answer.results if not row.error_code)
        if names:
            self.notes.append(f"passwords of users: {', '.join(names)}")
        return [{"name": name} for name in names]

    def _acls(self) -> list[Row]:
        found = []
        for resource in self._client.ask(acls.describe()):
            for acl in resource.acls:
                row = {
                    "principal": acl.principal,
                    "operation": _word(OPERATIONS, acl.operation),
                    "resource": _word(RESOURCES, resource.resource_type),
                    "name": resource.resource_name,
                }
                usual = {"pattern": "literal", "permission": "allow", "host": "*"}
                given = {
                    "pattern": _word(PATTERNS, resource.pattern_type),
                    "permission": _word(PERMISSIONS, acl.permission_type),
                    "host": acl.host,
                }
                found.append({**row, **{name: word for name, word in given.items() if word != usual[name]}})
        return sorted(found, key=lambda row: [row.get(name, "") for name in ACL_ORDER])

    def _quotas(self) -> list[Row]:
        found = []
        for entry in self._client.ask(quotas.describe()):
            entity = {each.entity_type.replace("-", "_"): each.entity_name for each in entry.entity}
            row: Row = {name: DEFAULT_ENTITY if value is None else value for name, value in sorted(entity.items())}
            values = {each.key: each.value for each in entry.values}
            found.append({**row, **{key: _number(value) for key, value in sorted(values.items())}})
        return sorted(found, key=lambda row: [str(row.get(name, "")) for name in ("user", "client_id", "ip")])


def _chosen(names: list[str], patterns: tuple[str, ...], kind: str) -> list[str]:
    """The names that fit one of the patterns. Errors: ValueError: one fits none."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"there is no {kind} {pattern}; there are {', '.join(names[:10]) or 'none'}")
    return [name for name in names if not patterns or any(fnmatchcase(name, each) for each in patterns)]


def _word(words: dict[str, int], number: int) -> str:
    return next((word for word, each in words.items() if each == number), str(number))


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() else value
