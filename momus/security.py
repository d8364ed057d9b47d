"""Users, certificates and ACLs of a cluster, from Python, and what its clients need to connect.

with Broker(security="sasl_ssl", users={"alice": "secret"}) as broker:
    producer = KafkaProducer(**broker.client_config("kafka-python", user="alice"))
    broker.acls.allow("alice", "write", topic="orders")
    broker.certificates.expire("server")
"""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
import weakref
from urllib.parse import quote

from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it
from momus.kit.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from momus.control import Control

RESOURCES = ("topic", "group", "cluster", "transactional_id", "delegation_token", "user")


class ClientFiles:
    """The certificates that clients of a cluster name in their settings, in a folder that goes with this object."""

    def __init__(self, control: Control, prefix: str) -> None:
        self._control = control
        self._prefix = prefix
        self._folder = ""

    def settings(self, client: str, user: str | None) -> dict[str, Any]:
        """The settings of a client, with its files written. Errors: ControlError: no such client or user."""
        query = f"?client={client}" + (f"&user={quote(user)}" if user is not None else "")
        answer: Any = self._control.ask("GET", f"{self._prefix}/security{query}")
        folder = ""
        if answer["files"]:
            if not self._folder:
                self._folder = tempfile.mkdtemp(prefix="momus-client-")
                weakref.finalize(self, _remove, self._folder, os.getpid())
            folder = os.path.join(self._folder, answer["user"] or "anybody")
            os.makedirs(folder, mode=0o700, exist_ok=True)
            for name, data in answer["files"].items():
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(base64.b64decode(data))
        found = {key: value.replace("{folder}", folder) for key, value in answer["settings"].items()}
        return _for_aiokafka(found) if client == "aiokafka" else found


def _remove(folder: str, owner_pid: int) -> None:
    if os.getpid() == owner_pid:
        shutil.rmtree(folder, ignore_errors=True)


def _for_aiokafka(found: dict[str, Any]) -> dict[str, Any]:
    """aiokafka takes an SSLContext in the place of files."""
    files = {key: found.pop(key) for key in list(found) if key.startswith("ssl_")}
    if files:
        import ssl  # 5 ms

        context = ssl.create_default_context(cafile=files["ssl_cafile"])
        if "ssl_certfile" in files:
            context.load_cert_chain(files["ssl_certfile"])
        found["ssl_context"] = context
    return found


class Users:
    """The users of a cluster that was made with security."""

    def __init__(self, control: Control, prefix: str) -> None:
        self._control = control
        self._path = f"{prefix}/users"

    def add(self, name: str, password: str | None = None) -> None:
        """Add a user, or give it another password; with mtls it gets a certificate. Errors: ControlError."""
        body = {"name": name} if password is None else {"name": name, "password": password}
        self._control.ask("POST", self._path, body)

    def remove(self, name: str) -> None:
        """Remove a user. Its connections stay. Errors: ControlError."""
        self._control.ask("DELETE", f"{self._path}/{quoted(name)}")

    def passwords(self) -> dict[str, str]:
        """Name -> password, as the settings for clients have them; without those whom clients of Kafka have added."""
        answer: Any = self._control.ask("GET", self._path)
        found: dict[str, str] = answer["passwords"]
        return found

    def list(self) -> list[str]:
        """Their names."""
        answer: Any = self._control.ask("GET", self._path)
        names: list[str] = answer["users"]
        return names


class Acls:
    """The ACLs of a cluster with an authorizer. Each word is one of kafka-acls.

    broker.acls.allow("alice", "read", topic="orders")
    broker.acls.deny("bob", "write", topic="pay", pattern="prefixed")
    broker.acls.allow("alice", "alter", cluster=True)
    """

    def __init__(self, control: Control, prefix: str) -> None:
        self._control = control
        self._path = f"{prefix}/acls"

    def allow(self, user: str, *operations: str, pattern: str = "literal", host: str = "*", **resource: Any) -> None:
        """Allow a user ("*": everybody) operations on a resource. Errors: ControlError.

        resource   one of topic, group, transactional_id with a name, or cluster=True.
        """
        self._make("allow", user, operations, pattern, host, resource)

    def deny(self, user: str, *operations: str, pattern: str = "literal", host: str = "*", **resource: Any) -> None:
        """Deny a user operations on a resource, whatever is allowed. Errors: ControlError."""
        self._make("deny", user, operations, pattern, host, resource)

    def remove(self, user: str | None = None) -> int:
        """Remove the ACLs of a user, or all. Returns how many."""
        query = "" if user is None else f"?principal={quote(_principal(user))}"
        answer: Any = self._control.ask("DELETE", self._path + query)
        removed: int = answer["removed"]
        return removed

    def list(self) -> list[dict[str, str]]:
        """All of them."""
        answer: Any = self._control.ask("GET", self._path)
        rows: list[dict[str, str]] = answer
        return rows

    def _make(
        self, permission: str, user: str, operations: tuple[str, ...], pattern: str, host: str, resource: dict[str, Any]
    ) -> None:
        if len(resource) != 1 or not operations:
            raise ValueError(f"name operations and one resource, by one of {', '.join(RESOURCES)}")
        ((kind, name),) = resource.items()
        row = {"principal": _principal(user), "resource": kind, "name": "kafka-cluster" if name is True else name}
        row |= {"pattern": pattern, "permission": permission, "host": host}
        self._control.ask("POST", self._path, {"acls": [{**row, "operation": each} for each in operations]})


def _principal(user: str) -> str:
    return user if ":" in user else f"User:{user}"


class Certificates:
    """The certificates of a cluster that was made with security. New connections meet what is changed here."""

    def __init__(self, control: Control, prefix: str) -> None:
        self._control = control
        self._path = f"{prefix}/certificates"

    def expire(self, name: str = "server") -> None:
        """Show a certificate that expired yesterday: the broker's ("server"), or a user's. Errors: ControlError."""
        self._control.ask("POST", self._path, {"action": "expire", "name": name})

    def issue(self, name: str = "server", hosts: Iterable[str] = ()) -> None:
        """Make a good certificate; with `hosts` one that is for these and no others. Errors: ControlError."""
        self._control.ask("POST", self._path, {"action": "issue", "name": name, "hosts": list(hosts)})

    def rotate(self, *, authority: bool = False) -> None:
        """Make all certificates again; `authority`: by a new one that no client trusts yet. Errors: ControlError."""
        self._control.ask("POST", self._path, {"action": "rotate-authority" if authority else "rotate"})
