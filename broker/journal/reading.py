"""Reads the journal: requests paired with their replies, decoded, filtered by what they name."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from broker.faults.fault import api_key, error_code
from broker.faults.named import may_name, named_in
from broker.journal.message_json import as_json, shown_uuid
from broker.journal.ring import REGISTRY, REGISTRY_HEAD_BYTES, REPLY_HEAD_BYTES, STRANGERS
from broker.wire.error_counts import errors_in
from protocol.api import ApiKey, api_label, request_class, response_class
from protocol.codegen import codec
from protocol.errors import MalformedError, error_label
from protocol.header import decode_request_header, decode_response_header

if TYPE_CHECKING:
    from broker.cluster.topics import Topic
    from broker.journal.ring import Kept, Peer, Piece, Ring
    from protocol.declare import Message

_HEAD: Final = Struct(">ihhi")
_STRANGERS: Final = {**{key: f"{kind} hello" for kind, key in STRANGERS.items()}, REGISTRY: "Registry"}
_HELLOS: Final = frozenset(map(str.lower, _STRANGERS.values()))
_NAMED: Final = ("group", "topic", "transactional_id")
SessionTopics: TypeAlias = "Callable[[Entry], frozenset[str] | None]"
ZERO_ID: Final = bytes(16)
_KEYS: Final = 1 << 15  # of APIs: 0 to this
FILTERS: Final = ("api", "client_id", "connection", "principal", "group", "topic", "transactional_id", "error")


class Entry:
    """One request, and its reply if it has been sent and is still in the ring."""

    __slots__ = (
        "answered",
        "api_key",
        "api_version",
        "at_ms",
        "at_us",
        "correlation_id",
        "frame",
        "latency_us",
        "number",
        "peer",
        "reply",
        "reply_size",
        "size",
    )

    def __init__(self, number: int, peer: Peer, at_ms: int, at_us: int, kept: Kept) -> None:
        self.number = number  # increases from request to request
        self.answered = -1  # increases from reply to reply
        self.peer = peer
        self.at_ms = at_ms
        self.at_us = at_us
        self.frame, self.size = kept
        _, self.api_key, self.api_version, self.correlation_id = _HEAD.unpack_from(self.frame)
        self.reply = b""
        self.reply_size = 0
        self.latency_us = -1

    @property
    def api(self) -> str:
        """The name of the API, or its key if Kafka has no such API: such a request closes its connection."""
        return _STRANGERS.get(self.api_key) or api_label(self.api_key)

    @property
    def client_id(self) -> str:
        """What the client calls itself."""
        try:
            return decode_request_header(self.frame[4:], 0)[0].client_id or ""
        except (MalformedError, IndexError):
            return ""

    @property
    def is_cut(self) -> bool:
        """Whether the request was too large to be kept whole."""
        return self.size > len(self.frame) and not _is_whole(self.frame)

    @property
    def is_reply_cut(self) -> bool:
        """Whether the reply was too large to be kept whole."""
        return self.reply_size > len(self.reply) and not _is_whole(self.reply)

    def request(self) -> Message | None:
        """The decoded request; None: it was too large to be kept whole, or is malformed."""
        if not _is_whole(self.frame):
            return None
        try:
            _, start = decode_request_header(self.frame[4:], 0)
            message, _ = codec(request_class(self.api_key), self.api_version).decode(self.frame[4:], start)
        except (MalformedError, LookupError, IndexError, ValueError):
            return None
        return message

    def response(self) -> Message | None:
        """The decoded reply, as `request`."""
        if not _is_whole(self.reply):
            return None
        version = 0 if self.api_key == ApiKey.API_VERSIONS else self.api_version
        try:
            _, start = decode_response_header(self.reply[4:], self.api_key, version)
            message, _ = codec(response_class(self.api_key), self.api_version).decode(self.reply[4:], start)
        except (MalformedError, LookupError, IndexError, ValueError):
            return None
        return message


def _is_whole(frame: bytes) -> bool:
    return len(frame) == 4 + int.from_bytes(frame[:4], "big")


class Pairs:
    """Pairs requests with their replies, a piece of the ring after the other, in the order in which they came."""

    def __init__(self) -> None:
        self.found: list[Entry] = []
        self._waiting: dict[int, deque[Entry]] = {}

    def add(self, piece: Piece) -> None:
        """Take a piece. A reply whose request was dropped, or was in no piece so far, is left out."""
        queue = self._waiting.setdefault(piece.peer.number, deque())
        for index, kept in enumerate(piece.each()):
            if not piece.is_reply:
                entry = Entry(piece.number_of(index), piece.peer, piece.at_ms, piece.at_us, kept)
                self.found.append(entry)
                queue.append(entry)
                continue
            correlation_id = int.from_bytes(kept[0][4:8], "big", signed=True)
            if not any(entry.correlation_id == correlation_id for entry in queue):
                continue
            while (entry := queue.popleft()).correlation_id != correlation_id:
                pass  # a request without a reply, as acks=0
            entry.answered = piece.number_of(index)
            entry.reply, entry.reply_size = kept
            entry.latency_us = piece.at_us - entry.at_us


def entries(ring: Ring) -> list[Entry]:
    """All requests in the ring, in the order in which they came."""
    pairs = Pairs()
    for piece in ring.pieces:
        pairs.add(piece)
    return pairs.found


def check_filters(filters: dict[str, str]) -> None:
    """Refuse the names of APIs and errors that do not exist: they fit nothing. Errors: FaultError."""
    if "api" in filters:
        _api(filters["api"])
    if "error" in filters:
        error_code(filters["error"])


def _api(text: str) -> str:
    """An API as entries name it, in small letters, by its name or its key. Errors: FaultError."""
    if text.isascii() and text.isdigit() and int(text[:9]) < _KEYS:
        return api_label(int(text)).lower()
    name = text.replace("_", "").lower()
    return name if name in _HELLOS else api_label(api_key(text)).lower()


def topic_names(ring: Ring | None, topics: Mapping[bytes, Topic]) -> Callable[[bytes], str]:
    """Finds the name of a topic by its id, also of one that was deleted; "" for an unknown id."""

    def name_of(topic_id: bytes) -> str:
        topic = topics.get(topic_id)
        if topic is not None:
            return topic.name
        return "" if ring is None else ring.deleted_topics.get(topic_id, "")

    return name_of


def judged(
    kept: Sequence[Entry],
    filters: dict[str, str],
    topic_name: Callable[[bytes], str],
    since: int = -1,
    before: int = -1,
    session_topics: SessionTopics | None = None,
) -> Iterator[tuple[Entry, bool | None]]:
    """All of `kept`, the newest first, each with whether it fits, as `judge` says it. Errors: FaultError.

    since           those that were answered before do not fit.
    before          those whose number is not below this do not fit; -1: all may.
    session_topics  tells what a Fetch of a session reads beside what it names (sessions.py); needed to find topics.
    """
    api = _api(filters["api"]) if "api" in filters else ""
    for entry in reversed(kept):
        if entry.answered < since or 0 <= before <= entry.number or (api and entry.api.lower() != api):
            yield entry, False
        else:
            yield entry, judge(entry, filters, topic_name, session_topics)


def fits(entry: Entry, filters: dict[str, str], topic_name: Callable[[bytes], str]) -> bool:
    """Whether an entry is known to pass all filters but that for the API."""
    return judge(entry, filters, topic_name) is True


def judge(
    entry: Entry,
    filters: dict[str, str],
    topic_name: Callable[[bytes], str],
    session_topics: SessionTopics | None = None,
) -> bool | None:
    """Whether an entry passes all filters but that for the API. None: what is kept of it does not tell."""
    if not fnmatchcase(entry.peer.principal, filters.get("principal", "*")):
        return False
    if "client_id" in filters and not fnmatchcase(entry.client_id, filters["client_id"]):
        return False
    if filters.get("connection", entry.peer.address) != entry.peer.address:
        return False
    named = _names_fit(entry, filters, topic_name, session_topics)
    if named is False or "error" not in filters:
        return named
    if entry.is_reply_cut:
        return None
    return named if filters["error"] in error_names(entry.response()) else False


def _names_fit(
    entry: Entry, filters: dict[str, str], topic_name: Callable[[bytes], str], session_topics: SessionTopics | None
) -> bool | None:
    wanted = {name: filters[name] for name in _NAMED if name in filters}
    if not wanted:
        return True
    request = entry.request()
    if request is None:
        return None if entry.is_cut and _could_name(entry.api_key, wanted) else False
    is_unknown = False

    def name_of(topic_id: bytes) -> str:
        nonlocal is_unknown
        name = topic_name(topic_id)
        is_unknown = is_unknown or not (name or topic_id == ZERO_ID)
        return name

    named = named_in(request, name_of)
    among = {"group": named.groups, "topic": named.topics, "transactional_id": named.transactional_ids}
    missing = [name for name, pattern in wanted.items() if not any(fnmatchcase(each, pattern) for each in among[name])]
    if missing != ["topic"]:
        return not missing
    read = frozenset() if session_topics is None else session_topics(entry)
    if read is not None and any(fnmatchcase(each, wanted["topic"]) for each in read if each):
        return True
    return None if is_unknown or read is None or "" in read else False


def _could_name(key: int, wanted: Iterable[str]) -> bool:
    """Whether requests of an API have a place for such names."""
    try:
        return may_name(request_class(key)).issuperset(wanted)
    except LookupError:
        return False


def error_names(response: Message | None) -> list[str]:
    """The errors in a reply, each once."""
    if response is None:
        return []
    return list(dict.fromkeys(map(error_label, errors_in(response))))


def describe(entry: Entry, ring: Ring, name_of: Callable[[bytes], str] | None = None) -> dict[str, object]:
    """An entry as JSON; with `topic_names`, by id, where its request names topics by id and they are known.

    Units: `at_ms` Unix milliseconds by the cluster's clock; `latency_ms` milliseconds as measured.
    """
    request, response = entry.request(), entry.response()
    return {
        "number": entry.number,
        "answered": entry.answered,
        "at_ms": entry.at_ms,
        "latency_ms": entry.latency_us / 1000 if entry.latency_us >= 0 else None,
        "connection": entry.peer.address,
        "client_id": entry.client_id,
        "software": software(entry.peer),
        "broker": entry.peer.broker,
        "listener": entry.peer.listener,
        "principal": entry.peer.principal,
        "api": entry.api,
        "version": entry.api_version,
        "correlation_id": entry.correlation_id,
        "bytes_in": entry.size,
        "bytes_out": entry.reply_size,
        "errors": error_names(response),
        **ring.notes(entry.peer, entry.correlation_id),
        "request": None if request is None else as_json(request, entry.api_version),
        "response": None if response is None else as_json(response, entry.api_version),
        **(_topic_names(request, name_of) if name_of is not None else {}),
        **(_described_registry(entry) if entry.api_key == REGISTRY else {}),
    }


def _topic_names(request: Any, name_of: Callable[[bytes], str]) -> dict[str, object]:
    if request is None:
        return {}
    names: dict[bytes, str] = {}

    def kept(topic_id: bytes) -> str:
        return names.setdefault(topic_id, name_of(topic_id))

    named_in(request, kept)
    told = {shown_uuid(topic_id): name for topic_id, name in names.items() if name}
    return {"topic_names": told} if told else {}


def _of_registry(kept: bytes, head_bytes: int) -> Any:
    """A request or reply of the schema registry; None: it was too large to be kept whole."""
    return json.loads(kept[head_bytes:]) if _is_whole(kept) else None


def _described_registry(entry: Entry) -> dict[str, object]:
    """What describe says of a request of the schema registry."""
    reply = _of_registry(entry.reply, REPLY_HEAD_BYTES) if entry.reply else None
    code = (reply or {}).get("error_code")
    return {
        "errors": [] if code is None else [str(code)],
        "request": _of_registry(entry.frame, 4 + REGISTRY_HEAD_BYTES),
        "response": reply,
    }


def software(peer: Peer) -> str:
    """Name and version of the client's software, "" if it has not said."""
    if not peer.hello:
        return ""
    try:
        header, start = decode_request_header(peer.hello[4:], 0)
        hello: Any = codec(request_class(ApiKey.API_VERSIONS), header.api_version).decode(peer.hello[4:], start)[0]
    except (MalformedError, LookupError, IndexError, ValueError):
        return ""
    return f"{hello.client_software_name} {hello.client_software_version}".strip()
