"""SCRAM credentials: what is kept, what is told of it, and what is refused with which code."""

from __future__ import annotations

import base64
import hashlib

import pytest
from admin_broker import AdminBroker

from broker.handlers.scram import alter_user_scram_credentials, describe_user_scram_credentials
from protocol.errors import ErrorCode
from protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
    error_response,
)

SHA_256, SHA_512 = 1, 2


def put(name, mechanism=SHA_256, iterations=4096, salted_password=b"p"):
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted_password
    )


def drop(name, mechanism=SHA_256):
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(broker, *changes):
    request = AlterUserScramCredentialsRequest(
        deletions=[c for c in changes if isinstance(c, ScramCredentialDeletion)],
        upsertions=[c for c in changes if isinstance(c, ScramCredentialUpsertion)],
    )
    results = broker.call(alter_user_scram_credentials, request).results
    assert len({r.user for r in results}) == len(results), "one result a user"
    return {r.user: (r.error_code, r.error_message) for r in results}


def describe(broker, *names, users=()):
    asked = None if users is None else [UserName(name=name) for name in names]
    request = DescribeUserScramCredentialsRequest(users=asked)
    reply = broker.call(describe_user_scram_credentials, request)
    assert (reply.error_code, reply.error_message) == (0, None)
    return {r.user: r.error_code or [(i.mechanism, i.iterations) for i in r.credential_infos] for r in reply.results}


def test_credentials_put_are_told_without_their_keys():
    broker = AdminBroker()
    assert alter(broker, put("a"), put("b", SHA_512, 16384)) == {"a": (0, None), "b": (0, None)}
    assert alter(broker, put("a", SHA_512, 5000)) == {"a": (0, None)}
    everyone = {"a": [(1, 4096), (2, 5000)], "b": [(2, 16384)]}
    assert describe(broker) == everyone
    assert describe(broker, users=None) == everyone
    assert describe(broker, "b") == {"b": [(2, 16384)]}
    broker.check_reload()


def test_keys_kept_are_those_of_the_rfc():
    # RFC 7677, section 3: user "user", password "pencil"
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    broker = AdminBroker()
    alter(broker, put("user", salted_password=salted))
    kept = broker.metadata.clients.credentials["user"][SHA_256]
    assert base64.b64encode(kept.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    assert base64.b64encode(kept.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="


def test_put_again_replaces_and_drop_removes():
    broker = AdminBroker()
    alter(broker, put("a"), put("b"))
    alter(broker, put("a", iterations=8192))
    assert describe(broker, "a") == {"a": [(1, 8192)]}
    assert alter(broker, drop("a")) == {"a": (0, None)}
    assert describe(broker) == {"b": [(1, 4096)]}
    assert describe(broker, "a") == {"a": ErrorCode.RESOURCE_NOT_FOUND}
    broker.check_reload()


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (put(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (drop(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (put("a", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (put("a", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (put("a", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (put("a", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (drop("a", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (
            drop("a"),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
        (put("a", salted_password=b""), ErrorCode.UNKNOWN_SERVER_ERROR, None),
    ],
)
def test_change_that_may_not_be_is_refused_alone(change, code, message):
    broker = AdminBroker()
    assert alter(broker, change, put("other")) == {change.name: (code, message), "other": (0, None)}
    assert describe(broker) == {"other": [(1, 4096)]}


@pytest.mark.parametrize(
    "changes",
    [
        (put("a"), put("a", SHA_512)),
        (drop("a"), put("a", SHA_512)),
        (drop("a"), drop("a")),
        (drop("a"), put("a"), put("a", SHA_512), put("a", iterations=1)),
    ],
)
def test_user_changed_twice_in_a_request_is_left_alone(changes):
    broker = AdminBroker()
    alter(broker, put("a"))
    told = alter(broker, *changes, put("b"))
    assert told["a"] == (
        ErrorCode.DUPLICATE_RESOURCE,
        "A user credential cannot be altered twice in the same request",
    )
    assert told["b"] == (0, None)
    assert describe(broker, "a") == {"a": [(1, 4096)]}


def test_first_fault_of_a_user_named_twice_is_told():
    assert alter(AdminBroker(), drop("a"), put("a"))["a"][0] == ErrorCode.RESOURCE_NOT_FOUND
    assert alter(AdminBroker(), put("a", iterations=1), put("a"))["a"][0] == ErrorCode.UNACCEPTABLE_CREDENTIAL


def test_describing_a_user_twice_or_an_unknown_one_is_an_error_of_that_user():
    broker = AdminBroker()
    alter(broker, put("a"), put("b"))
    assert describe(broker, "a", "b", "a", "c") == {
        "a": ErrorCode.DUPLICATE_RESOURCE,
        "b": [(1, 4096)],
        "c": ErrorCode.RESOURCE_NOT_FOUND,
    }


def test_refusal_of_the_whole_request_names_each_user_once():
    request = AlterUserScramCredentialsRequest(deletions=[drop("b"), drop("a")], upsertions=[put("a")])
    refused = error_response(request, 0, ErrorCode.REQUEST_TIMED_OUT)
    assert [(r.user, r.error_code) for r in refused.results] == [("a", 7), ("b", 7)]
    refused = error_response(DescribeUserScramCredentialsRequest(users=None), 0, ErrorCode.REQUEST_TIMED_OUT)
    assert (refused.error_code, refused.results) == (7, [])
