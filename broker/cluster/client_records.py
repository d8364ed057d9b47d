"""SCRAM credentials of users, delegation tokens, and client quotas: a part of the metadata's state.

`security/` authenticates by the credentials and tokens, `quotas/` throttles by the quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

from protocol.messages.metadata_records import (
    ClientQuotaRecord,
    DelegationTokenRecord,
    EntityData,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    encode_record,
)

Entity: TypeAlias = "tuple[tuple[str, str | None], ...]"  # (type, name) in the order of types; None: the default


class ClientSettings:
    """Credentials by user and mechanism, tokens by id, quotas by entity and key."""

    __slots__ = ("credentials", "quotas", "replays", "tokens")

    VOLATILE: ClassVar[Mapping[str, str]] = {"replays": "the same for every state"}

    def __init__(self) -> None:
        self.credentials: dict[str, dict[int, UserScramCredentialRecord]] = {}
        self.tokens: dict[str, DelegationTokenRecord] = {}
        self.quotas: dict[Entity, dict[str, float]] = {}
        self.replays: dict[type, Callable[[Any], None]] = {
            UserScramCredentialRecord: self._replay_credential,
            RemoveUserScramCredentialRecord: self._replay_credential_gone,
            DelegationTokenRecord: self._replay_token,
            RemoveDelegationTokenRecord: self._replay_token_gone,
            ClientQuotaRecord: self._replay_quota,
        }

    def _replay_credential(self, record: UserScramCredentialRecord) -> None:
        self.credentials.setdefault(record.name, {})[record.mechanism] = record

    def _replay_credential_gone(self, record: RemoveUserScramCredentialRecord) -> None:
        credentials = self.credentials[record.name]
        del credentials[record.mechanism]
        if not credentials:
            del self.credentials[record.name]

    def _replay_token(self, record: DelegationTokenRecord) -> None:
        self.tokens[record.token_id] = record

    def _replay_token_gone(self, record: RemoveDelegationTokenRecord) -> None:
        del self.tokens[record.token_id]

    def _replay_quota(self, record: ClientQuotaRecord) -> None:
        entity = entity_of([(part.entity_type, part.entity_name) for part in record.entity])
        values = self.quotas.setdefault(entity, {})
        if record.remove:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
        if not values:
            del self.quotas[entity]

    def image_records(self) -> Iterator[bytes]:
        """The state as records."""
        for credentials in self.credentials.values():
            for credential in credentials.values():
                yield encode_record(credential, 0)
        for token in self.tokens.values():
            yield encode_record(token, 0)
        for entity, values in self.quotas.items():
            for key, value in values.items():
                yield quota_record(entity, key, value)


def entity_of(parts: list[tuple[str, str | None]]) -> Entity:
    """An entity from its parts in any order; of two parts of a type the last counts, as in Kafka."""
    return tuple(sorted(dict(parts).items()))


def quota_record(entity: Entity, key: str, value: float | None) -> bytes:
    """One quota as a record; a value of None removes it."""
    record = ClientQuotaRecord(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        key=key,
        value=0.0 if value is None else value,
        remove=value is None,
    )
    return encode_record(record, 0)
