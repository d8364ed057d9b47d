"""Handlers of users and certificates, and of what clients need to connect."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any, Final, TypedDict

from broker.config.config_values import ConfigError
from broker.shell.client_configs import client_settings as settings_of
from broker.shell.control.routes import Call, RefusedError
from broker.shell.local_client import LocalClient
from broker.shell.made_security import MadeSecurity
from broker.shell.tls.own_authority import SERVER, check_user
from protocol.errors import ErrorCode
from protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

ACTIONS: Final = ("rotate", "rotate-authority", "expire", "issue")


class ClientSettings(TypedDict):
    """How a client connects: its settings, and the files that they name, in base64."""

    user: str
    settings: dict[str, str]
    files: dict[str, str]


class Users(TypedDict):
    """The users, and the passwords of those that were named or added here."""

    users: list[str]
    passwords: dict[str, str]


class Certificates(TypedDict):
    """The names of the certificates."""

    certificates: list[str]


async def client_settings(cluster: ClusterServer, call: Call) -> ClientSettings:
    """The settings of a client. Errors: RefusedError: no such client or user."""
    security = cluster.plan.security
    user = call.query.get("user") or next(iter(security.users if security else ()), "")
    try:
        files = security.client_files(user) if security is not None else {}
        settings = settings_of(call.query.get("client", "java"), ",".join(cluster.addresses), security, user)
    except LookupError as error:
        raise RefusedError(404, str(error.args[0])) from None
    encoded = {name: base64.b64encode(data).decode() for name, data in files.items()}
    return {"user": user, "settings": settings, "files": encoded}


def _security(cluster: ClusterServer) -> MadeSecurity:
    if cluster.plan.security is None:
        raise RefusedError(409, "the cluster was not made with security: --security, or security=")
    return cluster.plan.security


async def list_users(cluster: ClusterServer, call: Call) -> Users:
    """The users that were named, and those that clients have added."""
    named = cluster.plan.security.users if cluster.plan.security is not None else {}
    return {"users": sorted({*named, *cluster.broker.metadata.clients.credentials}), "passwords": {**named}}


async def add_user(cluster: ClusterServer, call: Call) -> Users:
    """Add a user. Errors: RefusedError."""
    security, name, password = _security(cluster), call.body["name"], call.body.get("password", "")
    try:
        check_user(name)
    except ConfigError as error:
        raise RefusedError(400, error.reason) from None
    if security.has_passwords and not password:
        raise RefusedError(400, '"password" is missing')
    if security.has_passwords:
        await set_password(cluster, name, password)
    security.users[name] = password
    if security.word == "mtls":
        security.authority.issue(name)
    return await list_users(cluster, call)


async def set_password(cluster: ClusterServer, name: str, password: str) -> None:
    """Let a user authenticate by SCRAM with this password. Errors: RefusedError."""
    await _change(cluster, upsertions=await _upsertions(cluster, name, password))


async def remove_user(cluster: ClusterServer, call: Call) -> Users:
    """Remove a user; its connections stay until they end. Errors: RefusedError."""
    name, security = call.words["user"], _security(cluster)
    known = cluster.broker.metadata.clients.credentials.get(name, {})
    if name not in security.users and not known:
        raise RefusedError(404, f"no such user: {name:.100}")
    if known:
        await _change(cluster, deletions=[ScramCredentialDeletion(name=name, mechanism=number) for number in known])
    security.users.pop(name, None)
    return await list_users(cluster, call)


async def _upsertions(cluster: ClusterServer, name: str, password: str) -> list[ScramCredentialUpsertion]:
    import hashlib  # 0 ms: loaded already

    found = []
    for number, digest in ((1, "sha256"), (2, "sha512")):
        salt = cluster.broker.turn.env.rng.getrandbits(128).to_bytes(16, "big")
        salted = await asyncio.to_thread(hashlib.pbkdf2_hmac, digest, password.encode(), salt, 4096)
        found.append(
            ScramCredentialUpsertion(name=name, mechanism=number, iterations=4096, salt=salt, salted_password=salted)
        )
    return found


async def _change(cluster: ClusterServer, **changes: Any) -> None:
    """Change credentials: one mechanism at a time, as Kafka takes a user once in a request."""
    client = LocalClient(cluster.broker, cluster.config)
    try:
        for what, each in [(what, change) for what, listed in changes.items() for change in listed]:
            answer = await client.call(AlterUserScramCredentialsRequest(**{what: [each]}), 0)
            for result in answer.results:
                if result.error_code != ErrorCode.NONE:
                    raise RefusedError(409, result.error_message or ErrorCode(result.error_code).name)
    finally:
        client.close()


async def change_certificates(cluster: ClusterServer, call: Call) -> Certificates:
    """Expire, rotate or issue certificates; new connections meet them. Errors: RefusedError."""
    security, action = _security(cluster), call.body["action"]
    if not security.has_certificates:
        raise RefusedError(409, f"there are no certificates with {security.word}")
    authority = security.authority
    if action not in ACTIONS:
        raise RefusedError(400, f'"action" takes one of {", ".join(ACTIONS)}')
    if action.startswith("rotate"):
        authority.rotate(authority=action == "rotate-authority")
    else:
        name = call.body.get("name", SERVER)
        names = [SERVER, *(security.users if security.word == "mtls" else ())]
        if name not in names:
            raise RefusedError(404, f"no certificate {name:.64}; there are {', '.join(names)}")
        authority.issue(name, is_expired=action == "expire", hosts=tuple(call.body.get("hosts", ())))
    return {"certificates": sorted(path.stem for path in authority.folder.glob("*.pem"))}
