"""A request of the registry in the journal, beside Kafka's: who registered what, when, and which id it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.registry.records import dump

if TYPE_CHECKING:
    from broker.registry.errors import RegistryError
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.control.http_requests import Head
    from broker.shell.registry.service import Call

SHOWN: Final = (
    "subject",
    "version",
    "id",
    "guid",
    "is_compatible",
    "messages",
    "mode",
    "compatibility",
    "resourceId",
    "associations",
)  # of an answer
LETTERS: Final = 1000  # of a schema, and of a message
ROWS, DEEP = 20, 6  # of a list or an object in a body, and within each other


class _Listener:
    name: Final = "REGISTRY"


class _Connection:
    """What the journal takes for the connection of one request."""

    listener: Final = _Listener()

    def __init__(self, head: Head, principal: str, node_id: int) -> None:
        self.principal = principal
        self.node_id = node_id
        self.transport = self
        self._head = head

    def get_extra_info(self, name: str) -> Any:
        return self._head.peer(name)


class Written:
    """One request, from when it has come until it is answered; where no journal is kept it is nothing."""

    def __init__(self, cluster: ClusterServer, call: Call, head: Head, principal: str) -> None:
        self._ring: Any = cluster.broker.clients.journal
        if self._ring is None:
            return
        self._status = call.route.status
        self._connection = _Connection(head, principal, cluster.nodes[0].node_id)
        asked = {"route": call.route.api, "method": head.method, "path": head.target, **call.words}
        body = _cut(call.body)
        self._ring.asked_registry(self._connection, dump({**asked, **({"body": body} if body else {})}))

    def answered(self, answer: Any) -> None:
        """It was served."""
        if self._ring is not None:
            found = answer if isinstance(answer, dict) else {}
            self._end({"status": self._status, **{key: _cut(found[key]) for key in SHOWN if key in found}}, {})

    def refused(self, error: RegistryError) -> None:
        """It was refused."""
        if self._ring is not None:
            told = {"status": error.status, "error_code": error.code, "message": _cut(str(error))}
            notes = {"why": error.why or _cut(str(error)), "fault": error.fault}
            self._end(told, {key: text for key, text in notes.items() if text})

    def _end(self, reply: dict[str, Any], notes: dict[str, str]) -> None:
        self._ring.answered_registry(self._connection, dump(reply), notes)


def _cut(value: Any, deep: int = DEEP) -> Any:
    """What is kept of a value: the beginnings of its texts, the first of its rows, down to some depth."""
    if isinstance(value, str):
        return value[:LETTERS]
    if isinstance(value, list):
        return [_cut(each, deep - 1) for each in value[:ROWS]] if deep else []
    if isinstance(value, dict):
        return {name[:LETTERS]: _cut(value[name], deep - 1) for name in list(value)[:ROWS]} if deep else {}
    return value
