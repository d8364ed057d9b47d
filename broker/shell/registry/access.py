"""Who asks the registry, and what they may: as on the cluster's first listener, by the cluster's users and ACLs.

A listener with SASL: HTTP's basic authentication by the same users. One with TLS: the registry has TLS too, with the
same certificate; where clients show certificates, these say who asks. With an authorizer: reading a subject needs
DESCRIBE on its topic, registering WRITE, deleting DELETE; config and mode need ALTER on the cluster. What a schema
refers to is read, and needs DESCRIBE. An association needs that of its subject, and WRITE on the topic that it is of
where it is made or changed. A subject is of the topic that it is named after: `orders-value` and `orders-key`
of `orders`, `orders-key-value` of `orders-key`, any other name of itself.

A wrong password waits as long as at a listener: connection.failed.authentication.delay.ms.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from broker.cluster.acls import ALTER, CLUSTER, CLUSTER_NAME, DELETE, DESCRIBE, TOPIC, WRITE
from broker.registry import routes
from broker.registry.associations.touched import touched
from broker.registry.contexts import beside, context_of, normalized
from broker.registry.errors import RegistryError
from broker.registry.records import references_of
from broker.security.principals import ANONYMOUS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from broker.registry.associations.touched import Touched
    from broker.registry.state import RegistryState
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.control.http_requests import Head
    from broker.shell.registry.service import Call

    May = Callable[[int, int, str], bool]  # operation, type of resource, its name

OPERATIONS: Final = {routes.DESCRIBE: DESCRIBE, routes.WRITE: WRITE, routes.DELETE: DELETE, routes.ALTER: ALTER}
NO_LOGIN: Final = RegistryError(401, 401, "Unauthorized")
MOST_KNOWN: Final = 1000


class Access:
    """The door of one cluster's registry."""

    def __init__(self, cluster: ClusterServer) -> None:
        self._cluster = cluster
        self._listener = cluster.nodes[0].main
        self._known: dict[str, tuple[str, Any]] = {}  # what was shown -> principal, and the credentials it was held to
        self._guess = asyncio.Lock()  # passwords are looked at one after the other, beside the broker's thread
        self._context: Any = None
        if self._listener.is_tls:
            from broker.shell.tls.contexts import ListenerContext  # 10 ms: most clusters have no TLS

            self._context = ListenerContext(cluster.config, self._listener.name, is_sasl=self._listener.is_sasl)

    def tls(self) -> ssl.SSLContext | None:
        """What connections are served with; each meets the certificate that the listener has then."""
        if self._context is None:
            return None
        first: ssl.SSLContext = self._context.current()

        def renew(connection: ssl.SSLObject, name: str, given: ssl.SSLContext) -> None:
            connection.context = self._context.current()

        first.sni_callback = renew  # for each handshake, with or without a name
        return first

    async def who(self, head: Head) -> str:
        """The principal of a request. Errors: RegistryError: it does not say who it is."""
        if self._listener.is_sasl:
            return await self._user(head.fields.get("authorization", ""))
        certificate = head.peer("peercert")
        if not certificate:
            return ANONYMOUS
        from broker.security.principals import distinguished_name  # 0 ms: there already

        found = self._context.rules.principal(distinguished_name(certificate))
        if not found:
            raise NO_LOGIN
        return str(found)

    async def _user(self, shown: str) -> str:
        """The user of an Authorization header; what was right is remembered until the user's credentials change."""
        kind, _, data = shown.partition(" ")
        try:
            name, colon, password = base64.b64decode(data.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise NO_LOGIN from None
        if kind.lower() != "basic" or not colon:
            raise NO_LOGIN
        kept = self._cluster.broker.metadata.clients.credentials.get(name)
        held_to = None if kept is None else tuple(kept.items())
        known = self._known.get(shown)
        if known is not None and known[1] == held_to:
            return known[0]
        broker = self._cluster.broker
        is_right = broker.security.password_check(self._listener.name, name)
        async with self._guess:
            is_known = await asyncio.to_thread(is_right, password)
        if not is_known:
            self._known.pop(shown, None)
            await asyncio.sleep(broker.config.connection_failed_authentication_delay_ms / 1000)
            raise NO_LOGIN
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[shown] = (f"User:{name}", held_to)
        return f"User:{name}"

    def check(self, call: Call, state: RegistryState, head: Head, principal: str) -> None:
        """Refuse what a principal may not. Errors: RegistryError."""
        needs, may = call.route.needs, self._asker(head, principal)
        if not needs or may is None:
            return
        if needs == routes.ALTER:
            if not may(ALTER, CLUSTER, CLUSTER_NAME):
                raise _denied(principal, needs, "the cluster")
        elif (subjects := _subjects(call, state)) and not any(
            may(OPERATIONS[needs], TOPIC, topic_of(each)) for each in subjects
        ):
            raise _denied(principal, needs, f"topic {topic_of(subjects[0])}")
        for touch in _touched(call, state):
            topic = touch.topic or topic_of(touch.subject)
            if not may(OPERATIONS[touch.needs], TOPIC, topic):
                raise _denied(principal, touch.needs, f"topic {topic}")
        for each in (*_referred(call, state), *_shown_instead(call, state)):
            if not may(DESCRIBE, TOPIC, topic_of(each)):
                raise _denied(principal, routes.DESCRIBE, f"topic {topic_of(each)}")

    def shown(self, call: Call, answer: Any, head: Head, principal: str) -> Any:
        """An answer without the subjects that a principal may not see."""
        may = self._asker(head, principal)
        if may is None:
            return answer
        if call.route.api == "GetAssociations":
            return {"results": [_without_hidden(each, may) for each in answer["results"]]}
        if call.route.api not in LISTS:
            return answer
        names = [each["subject"] if isinstance(each, dict) else each for each in answer]
        return [row for row, name in zip(answer, names, strict=True) if may(DESCRIBE, TOPIC, topic_of(name))]

    def _asker(self, head: Head, principal: str) -> May | None:
        """What the cluster's authorizer says of this client; None: there is none, all may do all."""
        guard = self._cluster.broker.router.guard
        if guard is None:
            return None
        host = str((head.peer("peername") or ("",))[0])
        return lambda operation, kind, name: bool(guard.authorizer.decide(principal, host, operation, kind, name)[0])


LISTS: Final = frozenset(("ListSubjects", "ListSchemas", "ListSubjectsOfId", "ListVersionsOfId", "ListAssociations"))
CHANGES: Final = frozenset(("CreateAssociation", "PutAssociation", "DeleteAssociations", "ChangeAssociations"))


def _touched(call: Call, state: RegistryState) -> list[Touched]:
    """What a request changes of associations: it may all of it, or nothing."""
    return touched(state, call.ask(state), call.route.needs) if call.route.api in CHANGES else []


def _without_hidden(result: dict[str, Any], may: May) -> dict[str, Any]:
    """A result of a batch without the associations of subjects that may not be seen; without any, without its names."""
    found = result.get("result", {}).get("associations", [])
    rows = [row for row in found if may(DESCRIBE, TOPIC, topic_of(row["subject"]))]
    if len(rows) == len(found):
        return result
    named = result["result"] if rows else {"resourceType": result["result"]["resourceType"]}
    return {"result": {**named, **({"associations": rows} if rows else {})}}


def topic_of(subject: str) -> str:
    """The topic whose records a subject describes."""
    for suffix in ("-value", "-key"):
        if subject.endswith(suffix):
            return subject[: -len(suffix)] or subject
    return subject


def _subjects(call: Call, state: RegistryState) -> list[str]:
    """The subjects that a request is about; one of them is enough."""
    if "subject" in call.words:
        return [normalized(call.ask(state).words["subject"])]
    rows = []
    if call.words.get("id", "").isdigit():
        number = int(call.words["id"])
        row = state.with_id(number, normalized(call.ask(state).query.get("subject", "")))
        rows = [] if row is None else state.of_id(number, context_of(row.subject))
    elif "guid" in call.words:
        guid = call.words["guid"].lower()
        rows = [row for row in state.all_versions() if row.guid == guid]
    return [row.subject for row in rows]


def _referred(call: Call, state: RegistryState) -> list[str]:
    """The subjects that the schema of a request refers to, and what their names stand for."""
    if "subject" not in call.words:
        return []
    parent = normalized(call.ask(state).words["subject"])
    try:
        named = [beside(parent, each.subject) for each in references_of(call.body)]
    except ValueError:  # the request is refused, and told why, where it is read
        return []
    return [name for each in named for name in dict.fromkeys((each, state.alias(each)))]


def _shown_instead(call: Call, state: RegistryState) -> list[str]:
    """The subjects of other contexts that may be answered where one of the default context is not there."""
    if "subject" not in call.words or call.route.api not in ("GetVersion", "LookUpSchema"):
        return []
    names = state.namesakes(normalized(call.ask(state).words["subject"]))
    return [each for each in names[1:] if each in state.subjects]


def _denied(principal: str, needs: str, what: str) -> RegistryError:
    why = f"{principal} may not {needs} {what}"
    return RegistryError(403, 40301, f"User is denied operation {needs.upper()} on {what}", why)
