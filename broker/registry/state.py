"""What the records of `_schemas` say: subjects with their versions, ids, references, configs and modes.

Shape: `replay` is given every record of the topic in its order, at a start and live alike, and nothing else changes the
       state. A record that is none of Confluent's is passed over and counted.
Source: Confluent's KafkaStoreMessageHandler (which record does what), InMemoryCache (what is looked up).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from broker.registry.records import CLEAR_SUBJECT, CONFIG, DELETE_SUBJECT, MODE, SCHEMA, Unread
from broker.registry.versions import Version, version_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.registry.records import Json, Record

Key = tuple[str, int]
READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, FORWARD = (
    "READWRITE",
    "READONLY",
    "READONLY_OVERRIDE",
    "IMPORT",
    "FORWARD",
)
MODES: Final = (READONLY, READWRITE, READONLY_OVERRIDE, IMPORT, FORWARD)
DEFAULT_LEVEL: Final = "BACKWARD"


class RegistryState:
    """The registry of one cluster.

    refused   how many records were passed over, and why the last of them was.
    """

    __slots__ = (
        *("_ids", "_unnamed", "by_id", "configs", "highest_id", "modes"),
        *("referrers", "refused", "subjects"),
    )
    VOLATILE: Final[dict[str, str]] = {
        "_ids": "made of the versions, of each when a content is looked for, or before that in idle time",
        "_unnamed": "the versions that are not among `_ids` yet",
    }

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, Version]] = {}
        self.by_id: dict[int, dict[Key, None]] = {}
        self._ids: dict[bytes, tuple[int, ...]] = {}  # by digest, sorted
        self._unnamed: dict[Key, Version] = {}
        self.referrers: dict[Key, dict[Key, None]] = {}
        self.configs: dict[str | None, Json] = {}
        self.modes: dict[str | None, str] = {}
        self.highest_id = 0
        self.refused: tuple[int, str] = (0, "")

    # -- what is asked

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Its versions, oldest first; softly deleted ones only if they are asked for."""
        rows = self.subjects.get(subject, {})
        return [rows[number] for number in sorted(rows) if deleted or not rows[number].is_deleted]

    def get(self, subject: str, version: int, *, deleted: bool = False) -> Version | None:
        """A version, or the latest for -1."""
        if version < 0:
            rows = self.versions(subject, deleted=deleted)
            return rows[-1] if rows else None
        found = self.subjects.get(subject, {}).get(version)
        return None if found is None or (found.is_deleted and not deleted) else found

    def has(self, subject: str, *, deleted: bool = False) -> bool:
        """Whether it has a version."""
        return any(deleted or not each.is_deleted for each in self.subjects.get(subject, {}).values())

    def of_id(self, number: int, *, deleted: bool = True) -> list[Version]:
        """The versions that have an id, by subject and version."""
        rows = (self.subjects[subject][version] for subject, version in sorted(self.by_id.get(number, ())))
        return [row for row in rows if deleted or not row.is_deleted]

    def id_of(self, digest: bytes) -> int | None:
        """The id of a content; where another program has given it several, the highest."""
        while self.name(len(self._unnamed)):
            pass
        return max(self._ids.get(digest, ()), default=None)

    def name(self, most: int) -> int:
        """Find out the digests of some versions, so that no request waits for it later. Returns how many are left."""
        for key in list(islice(self._unnamed, most)):
            row = self._unnamed.pop(key)
            known = self._ids.get(row.digest)
            self._ids[row.digest] = (row.id,) if known is None else tuple(sorted({*known, row.id}))
        return len(self._unnamed)

    def with_content(self, subject: str, digest: bytes, *, deleted: bool = False) -> Version | None:
        """The newest version of a subject that has this content."""
        rows = [row for row in self.versions(subject, deleted=deleted) if row.digest == digest]
        return rows[-1] if rows else None

    def referring(self, subject: str, version: int, *, deleted: bool) -> list[Version]:
        """The versions that refer to one; without `deleted` those that are not deleted."""
        keys = self.referrers.get((subject, version), {})
        rows = (self.subjects[name][number] for name, number in keys)
        return [row for row in rows if deleted or not row.is_deleted]

    def config(self, subject: str | None) -> Json:
        """What a subject goes by: its own config over the global one."""
        merged = {"compatibilityLevel": DEFAULT_LEVEL, **self.configs.get(None, {})}
        return merged if subject is None else {**merged, **self.configs.get(subject, {})}

    def mode(self, subject: str | None) -> str:
        """The mode that a subject goes by."""
        overall = self.modes.get(None, READWRITE)
        return overall if subject is None or overall == READONLY_OVERRIDE else self.modes.get(subject, overall)

    def all_versions(self) -> Iterator[Version]:
        """Every version, by subject."""
        for subject in sorted(self.subjects):
            yield from self.versions(subject, deleted=True)

    def facts(self) -> dict[str, Any]:
        """All of it, for comparison."""
        rows = [each.to_value() for each in self.all_versions()]
        ids = {number: sorted(keys) for number, keys in self.by_id.items()}
        named = {key: sorted(keys) for key, keys in self.referrers.items()}
        digests = {row.digest: self.id_of(row.digest) for row in self.all_versions()}
        rest = [digests, self._ids, self.configs, self.modes, self.highest_id]
        return {"versions": rows, "ids": ids, "referrers": named, "rest": rest}

    # -- replay

    def replay(self, record: Record) -> None:
        """Do what a record says."""
        if record.kind == SCHEMA:
            self._replay_schema(record)
        elif record.kind == CONFIG:
            self._replay_setting(self.configs, record, self._replayed_config(record))
        elif record.kind == MODE:
            assert not isinstance(record.value, Unread)  # that is a SCHEMA's
            mode = None if record.value is None else record.value.get("mode")
            self._replay_setting(self.modes, record, mode if mode in MODES else None)
        elif record.kind == DELETE_SUBJECT and record.value is not None:
            self._replay_delete_subject(record)
        elif record.kind == CLEAR_SUBJECT and record.value is not None:
            self._replay_clear(record.subject)

    def replay_refused(self, why: str) -> None:
        """Count a record that is none of Confluent's."""
        self.refused = (self.refused[0] + 1, why)

    def _replayed_config(self, record: Record) -> Json | None:
        assert not isinstance(record.value, Unread)  # that is a SCHEMA's
        if record.value is None:
            return None
        return {key: value for key, value in record.value.items() if key != "subject" and value is not None}

    def _replay_setting(self, table: dict[str | None, Any], record: Record, value: Any) -> None:
        if value is None:
            table.pop(record.subject, None)
        else:
            table[record.subject] = value

    def _replay_schema(self, record: Record) -> None:
        assert record.subject is not None
        if record.value is None:
            self._replay_gone((record.subject, record.version))
            return
        row = version_of(record.subject, record.version, record.value)
        key = (record.subject, record.version)
        others = self.by_id.get(row.id)
        if others:
            subject, version = next(iter(others))
            other = self.subjects[subject][version]
            if not other.has_text_of(row):
                self.replay_refused(
                    f"id {row.id} belongs to version {version} of {subject}, and to another schema here"
                )
                return
        if record.version in self.subjects.get(record.subject, ()):
            self._replay_gone(key)
        self.subjects.setdefault(record.subject, {})[record.version] = row
        self.by_id.setdefault(row.id, {})[key] = None
        self._unnamed[key] = row
        for each in row.references:
            self.referrers.setdefault((each.subject, each.version), {})[key] = None
        if row.id > self.highest_id:
            self.highest_id = row.id

    def _replay_gone(self, key: Key) -> None:
        """Take a version away, as if it had never been; its id is not given again."""
        subject, version = key
        row = self.subjects.get(subject, {}).pop(version, None)
        if row is None:
            return
        if not self.subjects[subject]:
            del self.subjects[subject]
        keys = self.by_id[row.id]
        del keys[key]
        if not keys:
            del self.by_id[row.id]
        self._unnamed.pop(key, None)
        if self._ids:
            self._replay_unnamed(row)
        for each in row.references:
            named = self.referrers.get((each.subject, each.version), {})
            named.pop(key, None)
            if not named:
                self.referrers.pop((each.subject, each.version), None)

    def _replay_unnamed(self, row: Version) -> None:
        """Take an id from its content, unless another version has both."""
        others = (self.subjects[subject][version] for subject, version in self.by_id.get(row.id, ()))
        ids = self._ids.get(row.digest, ())
        if row.id in ids and all(each.digest != row.digest for each in others):
            self._ids[row.digest] = tuple(each for each in ids if each != row.id)
            if not self._ids[row.digest]:
                del self._ids[row.digest]

    def _replay_delete_subject(self, record: Record) -> None:
        assert isinstance(record.value, dict)
        subject = str(record.value.get("subject") or record.subject)
        last = record.value.get("version")
        rows = self.subjects.get(subject, {})
        for number in list(rows):
            if type(last) is int and number <= last and not rows[number].is_deleted:
                rows[number] = rows[number].deleted()

    def _replay_clear(self, subject: str | None) -> None:
        """Drop what is softly deleted: of a subject, or of all."""
        for row in list(self.all_versions()):
            if row.is_deleted and subject in (None, row.subject):
                self._replay_gone((row.subject, row.version))
