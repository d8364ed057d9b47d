"""What a cluster holds beside topics and records, as its metadata log says: group settings, ACLs and quotas.

Also what no client can copy, by name: SCRAM passwords, of which a cluster stores only what proves them, delegation
tokens, and settings of brokers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    decode_record,
)

_BROKER, _CLIENT_METRICS, _GROUP = 4, 16, 32  # types of a config resource
_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
OF_BROKERS: Final = "settings of brokers belong to their cluster: set it there"


class Acl(NamedTuple):
    """An access rule; the numbers are Kafka's."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class Quota(NamedTuple):
    """A client quota. entity: (type, name; None: the default) each, by type."""

    entity: tuple[tuple[str, str | None], ...]
    key: str
    value: float


class NotCopied(NamedTuple):
    """Something of the source that the target will not have."""

    kind: str
    name: str
    why: str

    def as_json(self) -> dict[str, str]:
        """For the proof."""
        return self._asdict()


@dataclass(slots=True)
class Settings:
    """What of it can be copied, and what cannot."""

    groups: dict[str, dict[str, str]] = field(default_factory=dict)  # group -> its settings
    acls: list[Acl] = field(default_factory=list)
    quotas: list[Quota] = field(default_factory=list)
    not_copied: list[NotCopied] = field(default_factory=list)


def settings_of(values: Iterable[bytes]) -> Settings:
    """Those that are there after applying metadata records in order."""
    image = _Image()
    for value in values:
        image.apply(decode_record(value))
    return image.settings()


@dataclass(slots=True)
class _Image:
    """What there is after some records."""

    configs: dict[tuple[int, str, str], str] = field(default_factory=dict)
    acls: dict[bytes, Acl] = field(default_factory=dict)
    quotas: dict[tuple[Any, str], Quota] = field(default_factory=dict)
    passwords: set[tuple[str, int]] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)

    def apply(self, record: object) -> None:
        """One more record."""
        match record:
            case ConfigRecord():
                key = record.resource_type, record.resource_name, record.name
                self.configs.pop(key, None)
                if record.value is not None:
                    self.configs[key] = record.value
            case AccessControlEntryRecord():
                self.acls[record.id] = Acl(*(getattr(record, name) for name in Acl._fields))
            case RemoveAccessControlEntryRecord(id=gone):
                self.acls.pop(gone, None)
            case ClientQuotaRecord():
                entity = tuple(sorted((each.entity_type, each.entity_name) for each in record.entity))
                self.quotas.pop((entity, record.key), None)
                if not record.remove:
                    self.quotas[entity, record.key] = Quota(entity, record.key, record.value)
            case UserScramCredentialRecord(name=user, mechanism=mechanism):
                self.passwords.add((user, mechanism))
            case RemoveUserScramCredentialRecord(name=user, mechanism=mechanism):
                self.passwords.discard((user, mechanism))
            case DelegationTokenRecord(token_id=token):
                self.tokens.add(token)
            case RemoveDelegationTokenRecord(token_id=token):
                self.tokens.discard(token)

    def settings(self) -> Settings:
        """Sorted into what can be copied and what cannot."""
        found = Settings(
            acls=sorted(self.acls.values()), quotas=[self.quotas[key] for key in sorted(self.quotas, key=str)]
        )
        for (kind, name, setting), text in sorted(self.configs.items()):
            if kind == _GROUP:
                found.groups.setdefault(name, {})[setting] = text
            elif kind in (_BROKER, _CLIENT_METRICS):
                what = "broker setting" if kind == _BROKER else "client metrics subscription"
                found.not_copied.append(NotCopied(what, f"{setting} of {name or 'all brokers'}", OF_BROKERS))
        for user, mechanism in sorted(self.passwords):
            named = f"{user}, {_MECHANISMS.get(mechanism, mechanism)}"
            why = "a cluster does not store passwords: set it again in the target"
            found.not_copied.append(NotCopied("SCRAM password", named, why))
        for token in sorted(self.tokens):
            found.not_copied.append(NotCopied("delegation token", token, "its secret is the source's: make another"))
        return found


def without_settings(configs: dict[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """The settings whose names match none of the globs."""
    wanted = tuple(patterns)
    return {name: text for name, text in configs.items() if not any(fnmatchcase(name, glob) for glob in wanted)}
