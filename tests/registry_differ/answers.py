"""One registry as a sequence meets it, and its answers in a form that can be compared.

Ids are drawn by each registry for itself, so they are compared by the order in which a sequence meets them. Times are
left out. The texts of refusals are compared, but for those that quote a parser.
"""

from __future__ import annotations

import http.client
import json
import re
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

MEDIA: Final = "application/vnd.schemaregistry.v1+json"
IDS: Final = re.compile(r"@ID(\d)")
GUIDS: Final = re.compile(r"@GUID(\d)")
PARSED: Final = frozenset((42201, 422, 400, 409, 40901, 500))  # their texts quote parsers, or Java's exceptions
NAMED: Final = re.compile(r"\b(Schema|id) (\d+)\b")
ASSOCIATION: Final = 42212  # in a batch, also the code of a schema that is none
NESTED: Final = frozenset(("results", "result", "error", "associations"))
UNKNOWN_ID: Final = 999_999_998
TIMEOUT_S: Final = 120


class Answer(NamedTuple):
    """Status, what was answered as it came, and the same for comparison."""

    status: int
    body: Any
    compared: Any


class Line:
    """A registry during one sequence.

    word   what stands for `@U`.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection: http.client.HTTPConnection | None = None
        self.begin("")

    def begin(self, word: str) -> None:
        """Begin a sequence."""
        self.word = word
        self.ids: list[int] = []
        self.guids: list[str] = []

    def ask(self, method: str, path: str, body: Any) -> Answer:
        """The answer to a step. Errors: OSError."""
        path = path.replace("@U", self.word)
        path = IDS.sub(lambda found: str(self._known(self.ids, int(found[1]), UNKNOWN_ID)), path)
        path = GUIDS.sub(lambda found: str(self._known(self.guids, int(found[1]), "no-guid")), path)
        data = None if body is None else json.dumps(body).replace("@U", self.word).encode()
        status, media, text = self._sent(method, path, data)
        try:
            answer = json.loads(text) if text else None
        except ValueError:
            answer = text.decode(errors="replace")
        compared = self._compared(answer, ".c" in path)
        if path.split("?")[0].endswith("/referencedby") and isinstance(answer, list):
            compared = sorted(self._id(each) for each in answer)
        return Answer(status, answer, (status, media, compared))

    @staticmethod
    def _known(of: list[Any], number: int, default: Any) -> Any:
        return of[number] if number < len(of) else default

    def _sent(self, method: str, path: str, data: bytes | None) -> tuple[int, str, bytes]:
        for tried in range(2):
            if self._connection is None:
                self._connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=TIMEOUT_S)
            try:
                self._connection.request(method, path, data, {"Content-Type": MEDIA})
                reply = self._connection.getresponse()
                return reply.status, reply.headers.get("Content-Type") or "", reply.read()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self._connection = None
                if tried:
                    raise
        raise AssertionError

    def _compared(self, answer: Any, is_own: bool) -> Any:
        """`is_own`: of a context that no other sequence has, so that its highest id is the sequence's own."""
        if isinstance(answer, list):
            return [self._compared(each, is_own) for each in answer]
        if not isinstance(answer, dict):
            return answer
        if "resourceName" in answer and "guid" in answer:  # an association's own, drawn at random
            answer = {key: value for key, value in answer.items() if key not in ("guid", "createTs", "updateTs")}
        if "guid" in answer and answer["guid"] not in self.guids:
            self.guids.append(answer["guid"])
        if any(not each.startswith("{") for each in answer.get("messages", ())):  # why it is no schema, by a parser
            answer = {**answer, "messages": "no schema"}
        left_out = {
            "ts",
            *(() if is_own else ("maxId",)),
            *(("message",) if _quotes_parser(answer) else ()),
        }
        return {key: self._value(key, value) for key, value in answer.items() if key not in left_out}

    def _value(self, key: str, value: Any) -> Any:
        if key == "id" and isinstance(value, int):
            return self._id(value)
        if key in NESTED or (key == "schema" and isinstance(value, dict)):
            return self._compared(value, True)
        if key == "message":
            return NAMED.sub(lambda found: f"{found[1]} {self._known_id(found[2])}", value)
        return value

    def _known_id(self, text: str) -> str:
        """An id in a message, where it is one that was met."""
        return self._id(int(text)) if int(text) in self.ids else text

    def _id(self, number: int) -> str:
        """The name of an id: its place among those that were met."""
        if number not in self.ids:
            self.ids.append(number)
        return f"id {self.ids.index(number)}"


def _quotes_parser(answer: dict[str, Any]) -> bool:
    """Whether the text of a refusal is one of those that each registry has of its own."""
    code, text = answer.get("error_code"), str(answer.get("message", ""))
    return code in PARSED or (code == ASSOCIATION and not text.startswith("The association"))
