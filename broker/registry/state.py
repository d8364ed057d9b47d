"""What the records of `_schemas` say: subjects with their versions, ids, references, configs and modes.

Shape: `replay` is given every record of the topic in its order, at a start and live alike, and nothing else changes the
       state. A record that is none of Confluent's is passed over and counted.
Source: Confluent's KafkaStoreMessageHandler (which record does what), InMemoryCache (what is looked up).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from broker.registry import contexts
from broker.registry.associations.table import Associations
from broker.registry.records import ASSOC, CLEAR_SUBJECT, CONFIG, CONTEXT, DELETE_SUBJECT, MAX_INT, MODE, SCHEMA, Unread
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
# The config of a context that no one can name: where the highest id of each context outlives the schemas that had it.
HIGHEST_IDS: Final = ":.__momus highest ids:"
OWN: Final = frozenset(  # what a subject's config does not take from the global one
    (
        *("alias", "aliasForDeks", "compatibilityLevel", "defaultMetadata", "overrideMetadata"),
        *("defaultRuleSet", "overrideRuleSet"),
    )
)


class RegistryState:
    """The registry of one cluster.

    refused   how many records were passed over, and why the last of them was.
    """

    __slots__ = (
        *("_ids", "_unnamed", "associations", "by_id", "configs", "contexts", "highest_ids", "modes"),
        *("referrers", "refused", "subjects"),
    )
    VOLATILE: Final[dict[str, str]] = {
        "_ids": "made of the versions, of each when a content is looked for, or before that in idle time",
        "_unnamed": "the versions that are not among `_ids` yet",
    }

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, Version]] = {}
        self.by_id: dict[tuple[str, int], dict[Key, None]] = {}  # by context and id
        self._ids: dict[tuple[str, bytes], tuple[int, ...]] = {}  # by context and digest, sorted
        self._unnamed: dict[Key, Version] = {}
        self.referrers: dict[Key, dict[Key, None]] = {}
        self.configs: dict[str | None, Json] = {}
        self.modes: dict[str | None, str] = {}
        self.contexts: dict[str, None] = {}  # but the default one
        self.associations = Associations()
        self.highest_ids: dict[str, int] = {}  # by context
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

    def of_id(self, number: int, context: str = contexts.DEFAULT, *, deleted: bool = True) -> list[Version]:
        """The versions of a context that have an id, by subject and version."""
        keys = sorted(self.by_id.get((context, number), ()))
        rows = (self.subjects[subject][version] for subject, version in keys)
        return [row for row in rows if deleted or not row.is_deleted]

    def with_id(self, number: int, subject: str) -> Version | None:
        """The version that shows an id where a subject, or a context, asks: of that subject, if it has it.

        Where none is named, or one of the default context that has not this id, other contexts' subjects of its name
        are looked at, and then any subject.
        """
        context, name = contexts.context_of(subject), contexts.name_of(subject)
        rows = self.of_id(number, context)
        exact = next((row for row in rows if row.subject == subject), None)
        if not name:
            return rows[0] if rows else None
        if exact is not None or context != contexts.DEFAULT:
            return exact
        for other in sorted(self.contexts):
            qualified = contexts.prefix_of(other) + name
            found = next((row for row in self.of_id(number, other) if row.subject == qualified), None)
            if found is not None:
                return found
        return rows[0] if rows else None

    def id_of(self, digest: bytes, context: str = contexts.DEFAULT) -> int | None:
        """The id of a content in a context; where another program has given it several, the highest."""
        while self.name(len(self._unnamed)):
            pass
        return max(self._ids.get((context, digest), ()), default=None)

    def namesakes(self, subject: str) -> list[str]:
        """A subject; for one of the default context that is not there, also those of other contexts of its name."""
        if subject in self.subjects or contexts.context_of(subject) != contexts.DEFAULT:
            return [subject]
        return [subject, *(contexts.prefix_of(each) + subject for each in sorted(self.contexts))]

    def all_contexts(self) -> list[str]:
        """The default one, and the others by name."""
        return [contexts.DEFAULT, *sorted(self.contexts)]

    def name(self, most: int) -> int:
        """Find out the digests of some versions, so that no request waits for it later. Returns how many are left."""
        for key in list(islice(self._unnamed, most)):
            row = self._unnamed.pop(key)
            named = (contexts.context_of(row.subject), row.digest)
            known = self._ids.get(named)
            self._ids[named] = (row.id,) if known is None else tuple(sorted({*known, row.id}))
        return len(self._unnamed)

    def is_referenced(self, subject: str) -> bool:
        """Whether a schema refers, or referred until it was softly deleted, to any version of a subject."""
        return any(self.referring(subject, each, deleted=True) for each in self.subjects.get(subject, ()))

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
        """What a subject or a context goes by: its own config, or that of what it is in.

        Flags, policy and group of compatibility that a subject's own config does not name are the global one's.
        """
        base = {"compatibilityLevel": DEFAULT_LEVEL}
        if subject is not None and subject in self.configs:
            taken = {key: value for key, value in self.configs.get(None, {}).items() if key not in OWN}
            return {**base, **taken, **self.configs[subject]}
        return {**base, **next((self.configs[each] for each in _scopes(subject) if each in self.configs), {})}

    def mode(self, subject: str | None) -> str:
        """The mode that a subject or a context goes by."""
        if self.modes.get(None) == READONLY_OVERRIDE:
            return READONLY_OVERRIDE
        return next((self.modes[each] for each in _scopes(subject) if each in self.modes), READWRITE)

    def alias(self, subject: str) -> str:
        """The subject that another name stands for; a name that stands for nothing else is itself."""
        found = self.configs.get(subject, {}).get("alias")
        return contexts.beside(subject, found) if found else subject

    def all_versions(self) -> Iterator[Version]:
        """Every version, by subject."""
        for subject in sorted(self.subjects):
            yield from self.versions(subject, deleted=True)

    def facts(self) -> dict[str, Any]:
        """All of it, for comparison."""
        rows = [each.to_value() for each in self.all_versions()]
        ids = {place: sorted(keys) for place, keys in self.by_id.items()}
        named = {key: sorted(keys) for key, keys in self.referrers.items()}
        digests = {row.digest: self.id_of(row.digest, contexts.context_of(row.subject)) for row in self.all_versions()}
        rest = [digests, self._ids, self.configs, self.modes, self.highest_ids, sorted(self.contexts)]
        associated = [each.to_json() for each in self.associations.rows()]
        return {"versions": rows, "ids": ids, "referrers": named, "rest": rest, "associations": associated}

    # -- replay

    def replay(self, record: Record, timestamp_ms: int = 0) -> None:
        """Do what a record says, which was written then."""
        if record.kind == SCHEMA:
            self._replay_schema(record, timestamp_ms)
        elif record.kind == CONFIG and record.subject == HIGHEST_IDS:
            self._replay_highest(record)
        elif record.kind == CONTEXT:
            self._replay_context(record)
        elif record.kind == CONFIG:
            self._replay_setting(self.configs, record, self._replayed_config(record))
        elif record.kind == MODE:
            assert not isinstance(record.value, Unread)  # that is a SCHEMA's
            mode = None if record.value is None else record.value.get("mode")
            self._replay_setting(self.modes, record, mode if mode in MODES else None)
        elif record.kind == ASSOC:
            self.associations.replay(record, timestamp_ms)
        elif record.kind == DELETE_SUBJECT and record.value is not None:
            self._replay_delete_subject(record, timestamp_ms)
        elif record.kind == CLEAR_SUBJECT and record.value is not None:
            self._replay_clear(record.subject)

    def replay_refused(self, why: str) -> None:
        """Count a record that is none of Confluent's."""
        self.refused = (self.refused[0] + 1, why)

    def _replay_highest(self, record: Record) -> None:
        value = record.value if isinstance(record.value, dict) else {}
        rows = value.get("highestIds")
        for context, number in rows.items() if isinstance(rows, dict) else ():
            if type(number) is int and 0 <= number <= MAX_INT:
                self.highest_ids[context] = max(number, self.highest_ids.get(context, 0))

    def _replay_context(self, record: Record) -> None:
        if record.subject in (None, contexts.DEFAULT):
            return
        if record.value is None:
            self.contexts.pop(record.subject, None)
        else:
            self.contexts[record.subject] = None

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

    def replay_plain(self, subject: str, version: int, value: Unread, timestamp_ms: int) -> None:
        """The same for a SCHEMA of the usual form, of which there are ten thousand at a start."""
        self._replay_version(Version(subject, version, value.number, value, timestamp_ms))

    def _replay_schema(self, record: Record, timestamp_ms: int) -> None:
        assert record.subject is not None
        if record.value is None:
            self._replay_gone((record.subject, record.version))
        else:
            self._replay_version(version_of(record.subject, record.version, record.value, timestamp_ms))

    def _replay_version(self, row: Version) -> None:
        subject, number = row.subject, row.id
        key, context = (subject, row.version), contexts.context_of(subject)
        others = self.by_id.get((context, number))
        if others:
            name, version = next(iter(others))
            if not self.subjects[name][version].has_text_of(row):
                self.replay_refused(f"id {number} belongs to version {version} of {name}, and to another schema here")
                return
        versions = self.subjects.get(subject)
        if versions is not None and row.version in versions:
            self._replay_gone(key)
            versions = self.subjects.get(subject)
        if versions is None:
            self.subjects[subject] = {row.version: row}
        else:
            versions[row.version] = row
        others = self.by_id.get((context, number))
        if others is None:
            self.by_id[context, number] = {key: None}
        else:
            others[key] = None
        self._unnamed[key] = row
        for each in row.references:
            self.referrers.setdefault((contexts.beside(subject, each.subject), each.version), {})[key] = None
        if number > self.highest_ids.get(context, 0):
            self.highest_ids[context] = number

    def _replay_gone(self, key: Key) -> None:
        """Take a version away, as if it had never been; its id is not given again."""
        subject, version = key
        row = self.subjects.get(subject, {}).pop(version, None)
        if row is None:
            return
        if not self.subjects[subject]:
            del self.subjects[subject]
        place = (contexts.context_of(subject), row.id)
        del self.by_id[place][key]
        if not self.by_id[place]:
            del self.by_id[place]
        self._unnamed.pop(key, None)
        if self._ids:
            self._replay_unnamed(row)
        for each in row.references:
            referred = (contexts.beside(subject, each.subject), each.version)
            named = self.referrers.get(referred, {})
            named.pop(key, None)
            if not named:
                self.referrers.pop(referred, None)

    def _replay_unnamed(self, row: Version) -> None:
        """Take an id from its content, unless another version has both."""
        context = contexts.context_of(row.subject)
        others = (self.subjects[subject][version] for subject, version in self.by_id.get((context, row.id), ()))
        ids = self._ids.get((context, row.digest), ())
        if row.id in ids and all(each.digest != row.digest for each in others):
            self._ids[context, row.digest] = tuple(each for each in ids if each != row.id)
            if not self._ids[context, row.digest]:
                del self._ids[context, row.digest]

    def _replay_delete_subject(self, record: Record, timestamp_ms: int) -> None:
        assert isinstance(record.value, dict)
        subject = str(record.value.get("subject") or record.subject)
        last = record.value.get("version")
        rows = self.subjects.get(subject, {})
        for number in list(rows):
            if type(last) is int and number <= last and not rows[number].is_deleted:
                rows[number] = rows[number].deleted(timestamp_ms)

    def _replay_clear(self, subject: str | None) -> None:
        """Drop what is softly deleted: of a subject, or of all."""
        for row in list(self.all_versions()):
            if row.is_deleted and contexts.is_within(row.subject, subject):
                self._replay_gone((row.subject, row.version))


def _scopes(subject: str | None) -> tuple[str | None, ...]:
    """Where config and mode of a subject are looked for, nearest first."""
    whole = contexts.prefix_of(contexts.context_of(subject)) or None
    return (whole, contexts.GLOBAL) if contexts.is_whole(subject) else (subject, whole, contexts.GLOBAL)
