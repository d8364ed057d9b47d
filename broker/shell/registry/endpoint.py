"""The registry's HTTP: Confluent's content types and errors over the server of the control endpoint.

Differs:  The schema registry refuses requests of web pages, and on a loopback address a Host that is neither localhost
          nor an address: by a name of its own a page would reach a local port. Confluent's does not.
"""

from __future__ import annotations

import asyncio
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from broker.registry.errors import RegistryError, of_http
from broker.registry.records import dump
from broker.shell.control.http import LOCAL_HOST, HttpServer, is_of_our_page, response
from broker.shell.control.routes import RefusedError, Text
from broker.shell.registry.faults import served
from broker.shell.registry.journal import Written
from broker.shell.registry.request_ids import FIELD, RequestIds
from broker.shell.registry.service import Call

if TYPE_CHECKING:
    from broker.shell.control.http_door import Door
    from broker.shell.control.http_requests import Head
    from broker.shell.registry.access import Access
    from broker.shell.registry.kept import Origin
    from broker.shell.registry.service import Registry

MEDIA: Final = "application/vnd.schemaregistry.v1+json"
# In the order in which an Accept that does not choose is answered.
ANSWERED: Final = (MEDIA, "application/vnd.schemaregistry+json", "application/json")
TAKEN: Final = frozenset((*ANSWERED, "application/octet-stream"))
UNAUTHORIZED: Final = 401
SHORT: Final = 64 << 10  # bytes of a body that is parsed within a millisecond, whatever it holds
PARTS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,]', re.DOTALL)  # texts, and what begins a value
MOST_PARTS: Final = 20_000
PARTS_A_TURN: Final = 2000
LOOPBACK: Final = re.compile(r"localhost|127\.\d+\.\d+\.\d+|\[?::1\]?")


class RegistryHttp(HttpServer):
    """The HTTP server of one cluster's registry.

    host   where it listens.
    """

    def __init__(self, registry: Registry, access: Access, host: str) -> None:
        super().__init__(self._none)
        self._registry = registry
        self._access = access
        self._ids = RequestIds()
        self._is_local = LOOPBACK.fullmatch(host) is not None

    async def _none(self, method: str, target: str, body: dict[str, Any]) -> Any:
        raise AssertionError  # `answer` does without

    def check(self, head: Head) -> None:
        """Refuse who may not ask. Errors: RefusedError."""
        host = head.fields.get("host", "localhost")
        if not is_of_our_page(head, host, False):
            raise RefusedError(403, "requests of web pages are refused")
        if self._is_local and not LOCAL_HOST.fullmatch(host):
            raise RefusedError(421, f"{host:.100} is not a local address: ask by localhost or an address")

    async def admit(self, head: Head) -> None:
        """Find out who asks. Errors: RefusedError."""
        try:
            head.principal = await self._access.who(head)
        except RegistryError as error:
            raise RefusedError(error.status, str(error)) from None

    def shortcut(self, door: Door, data: bytes) -> bytes | None:
        """See HttpServer."""
        parts = self._registry.kept.find(door, data)
        return None if parts is None else parts[0] if len(parts) == 1 else self._ids.made().encode().join(parts)

    async def answer(self, head: Head, body: bytes | bytearray) -> tuple[int, Any]:
        """Status and answer of a request."""
        media, origin, server = MEDIA, self._registry.kept.origin(), self._registry.server()
        try:
            media = _answered(head.fields.get("accept", "*/*"))
            call = Call("GET" if head.method == "HEAD" else head.method, head.target, server)
            call.body = await _parsed(head, body)
            principal = head.principal
            self._access.check(call, await self._registry.state_for(call), head, principal)
            written = Written(self._registry.cluster, call, head, principal)
            try:
                answer = await served(self._registry, call, head, principal)
                answer = self._access.shown(call, answer, head, principal)
            except RegistryError as error:
                error = error.as_of(server.release)
                written.refused(error)
                raise error from None
            written.answered(answer)
            text = Text("" if answer is None else media, _written(call, answer))
            if head.method == "GET" and head.keeps_alive and head.data:
                self._keep(head, text, origin)
            return (204 if answer is None else call.route.status), text
        except RegistryError as error:
            return error.status, _refusal(media, error)

    def _keep(self, head: Head, text: Text, origin: Origin | None) -> None:
        """Keep a response for the same request; one that named no id gets another id each time."""
        if self._ids.is_named(head.fields):
            parts: tuple[bytes, ...] = (response(200, text, True, self._ids.fields(head.fields)),)
        else:
            before, after = response(200, text, True, {FIELD: "?"}).split(b": ?\r\n", 1)
            parts = (before + b": ", b"\r\n" + after)
        self._registry.kept.keep(head.door, head.data, parts, origin)

    def fields(self, head: Head | None) -> dict[str, str]:
        """Its id, which every response has: see HttpServer."""
        return self._ids.fields({} if head is None else head.fields)

    def explain(self, status: int, why: str) -> Any:
        """The answer to what is refused before it is a request of the registry."""
        return _refusal(MEDIA, RegistryError(status, status, why))


def _refusal(media: str, error: RegistryError) -> Text:
    fields = {"WWW-Authenticate": 'Basic realm="momus"'} if error.status == UNAUTHORIZED else {}
    return Text(media, dump({"error_code": error.code, "message": str(error)}), fields)


def _written(call: Call, answer: Any) -> bytes:
    """The body; a schema that is asked for alone is no JSON text of a text, but itself."""
    if answer is None:
        return b""
    return answer.encode() if call.route.path.endswith("/schema") else dump(answer)


@lru_cache(maxsize=100)
def _answered(wanted: str) -> str:
    """The content type of the answer, by Accept. Errors: RegistryError: none that the client takes."""
    best, found = 0.0, ""
    for text in wanted.split(","):
        media, *words = (word.strip().lower() for word in text.split(";"))
        weight = next((_number(word[2:]) for word in words if word.startswith("q=")), 1.0)
        match = next((each for each in ANSWERED if media in (each, "application/*", "*") or media[:2] == "*/"), "")
        if match and weight > best:
            best, found = weight, match
    if not found:
        raise of_http(406, "Not Acceptable")
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


async def _parsed(head: Head, body: bytes | bytearray) -> dict[str, Any]:
    """The JSON object of a body; an empty one for none. Errors: RegistryError."""
    if head.method not in ("POST", "PUT", "PATCH"):
        return {}
    media = head.fields.get("content-type", MEDIA).partition(";")[0].strip().lower()
    if media not in TAKEN:
        raise of_http(415, "Unsupported Media Type")
    if body.strip() in (b"", b"null"):
        raise RegistryError(422, 422, "the body must not be null (was null)")
    if len(body) > SHORT:
        await _check_count(body)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RegistryError(400, 400, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RegistryError(400, 400, "the body is not a JSON object")
    return value


async def _check_count(body: bytes | bytearray) -> None:
    """Refuse what takes much longer to parse than its schema to copy, and let others have their turn meanwhile.

    Errors: RegistryError.
    """
    for number, _ in enumerate(PARTS.finditer(body)):
        if number > MOST_PARTS:
            raise RegistryError(400, 400, f"the body has more than {MOST_PARTS} values: a schema is one text")
        if number % PARTS_A_TURN == 0:
            await asyncio.sleep(0)
