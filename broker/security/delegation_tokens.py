"""Delegation tokens: their HMAC, the SCRAM credentials that follow from it, and who may renew and see one.

The HMAC of a token is that of its id under `delegation.token.secret.key`; as base64 it is the token's password. So
nothing secret is in the records. Times are Unix milliseconds of the cluster's clock.

Source: KIP-48, KIP-373; Kafka's DelegationTokenManager and DelegationTokenControlManager.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from typing import TYPE_CHECKING, Final

from broker.security.mechanisms import ScramKeys, scram_keys

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig
    from protocol.messages.metadata_records import DelegationTokenRecord

MOST_KEYS: Final = 1000  # credentials that are kept: to make one takes 2 ms


def secret_of(config: BrokerConfig) -> bytes:
    """The key under which HMACs are made; empty: there are no tokens."""
    return (config.delegation_token_secret_key or "").encode()


def token_hmac(secret: bytes, token_id: str) -> bytes:
    """The HMAC of a token."""
    return hmac.digest(secret, token_id.encode(), "sha512")


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Whether the token is no longer usable."""
    return now_ms > min(token.expiration_timestamp, token.max_timestamp)


def may_renew(token: DelegationTokenRecord, principal: str) -> bool:
    """Whether a principal may renew or expire the token: its owner and its renewers."""
    return principal == token.owner or principal in token.renewers


def concerns(token: DelegationTokenRecord, principal: str) -> bool:
    """Whether a principal has to do with the token: those, and who asked for it."""
    return may_renew(token, principal) or principal == token.requester


class TokenKeys:
    """The SCRAM credentials of tokens."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._kept: dict[tuple[str, int], ScramKeys] = {}

    def has(self, token_id: str, mechanism: int) -> bool:
        """Whether those of a token need not be made."""
        return (token_id, mechanism) in self._kept

    def find(self, token_id: str, mechanism: int) -> ScramKeys:
        """Those of a token that exists, for a mechanism as in Kafka's records."""
        found = self._kept.get((token_id, mechanism))
        if found is None:
            if len(self._kept) >= MOST_KEYS:
                self._kept.clear()
            code = token_hmac(self._secret, token_id)
            salt = hmac.digest(code, b"salt", "sha256")
            found = self._kept[token_id, mechanism] = scram_keys(b64encode(code).decode(), mechanism, salt)
        return found
