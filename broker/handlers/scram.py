"""SCRAM credentials of users (KIP-554).

DescribeUserScramCredentials  Null or an empty list means all users.
AlterUserScramCredentials     Deletions and upsertions; a user changes whole or not at all, all users in one batch.

Beyond Kafka: the password of a SCRAM user is taken by PLAIN as well.
Source:  Kafka's ScramControlManager and ScramImage.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Protocol

from broker.base.context import Context
from broker.handlers.admin_view import after_metadata, refuse, repeated
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.metadata_records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    encode_record,
)
from protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.runtime import Shard

_DIGESTS = {1: "sha256", 2: "sha512"}  # by mechanism: SCRAM-SHA-256, SCRAM-SHA-512
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def metadata_shard(self) -> Shard: ...


def describe_user_scram_credentials(
    broker: View, ctx: Context, request: DescribeUserScramCredentialsRequest
) -> Decision:
    """Answer mechanisms and iterations of users. Errors, of a user: RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE."""
    known = broker.metadata.clients.credentials
    asked = [user.name for user in request.users or ()]
    twice = repeated(asked)
    results = []
    for name in dict.fromkeys(asked or known):
        result = DescribeUserScramCredentialsResult(user=name, error_message=None)
        if name in twice:
            result.error_code = ErrorCode.DUPLICATE_RESOURCE
            result.error_message = (
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {name:.249}"
            )
        elif name not in known:
            result.error_code = ErrorCode.RESOURCE_NOT_FOUND
            result.error_message = f"Attempt to describe a user credential that does not exist: {name:.249}"
        else:
            result.credential_infos = [
                CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
                for mechanism, credential in sorted(known[name].items())
            ]
        results.append(result)
    return Decision(DescribeUserScramCredentialsResponse(error_message=None, results=results))


def alter_user_scram_credentials(broker: View, ctx: Context, request: AlterUserScramCredentialsRequest) -> Decision:
    """Apply the valid changes; answer an error for each of the others.

    Errors a user:  DUPLICATE_RESOURCE: named twice. UNACCEPTABLE_CREDENTIAL: no name, or too few or too many
                    iterations. UNSUPPORTED_SASL_MECHANISM. RESOURCE_NOT_FOUND: nothing to delete.
    """
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*request.deletions, *request.upsertions]
    named_twice = repeated(change.name for change in changes)
    reported: set[str] = set()
    results: list[AlterUserScramCredentialsResult] = []
    records: list[bytes] = []
    for change in changes:
        if change.name in reported:
            continue
        reported.add(change.name)
        result = AlterUserScramCredentialsResult(user=change.name, error_message=None)
        results.append(result)
        try:
            record = _record(broker, change)  # the first fault is answered, before "twice"
            if change.name in named_twice:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
                )
            if isinstance(change, ScramCredentialUpsertion) and not change.salted_password:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka: its HMAC takes no empty key
            records.append(record)
        except KafkaError as error:
            refuse(result, error)
    return after_metadata(broker, AlterUserScramCredentialsResponse(results=results), records)


def _record(broker: View, change: ScramCredentialDeletion | ScramCredentialUpsertion) -> bytes:
    """The record of one change. Errors: see alter_user_scram_credentials."""
    if not change.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    digest = _DIGESTS.get(change.mechanism)
    if digest is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        if change.mechanism not in broker.metadata.clients.credentials.get(change.name, {}):
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return encode_record(RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism), 0)
    if not MIN_ITERATIONS <= change.iterations <= MAX_ITERATIONS:
        amount = "few" if change.iterations < MIN_ITERATIONS else "many"
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"Too {amount} iterations")

    def keyed(text: bytes) -> bytes:
        return hmac.digest(change.salted_password, text, digest)

    # RFC 5802: what a server stores cannot be used to log in elsewhere
    return encode_record(
        UserScramCredentialRecord(
            name=change.name,
            mechanism=change.mechanism,
            salt=change.salt,
            stored_key=hashlib.new(digest, keyed(b"Client Key")).digest(),
            server_key=keyed(b"Server Key"),
            iterations=change.iterations,
        ),
        0,
    )
