"""What clients have sent, as text for a page: decoded where it can be; cut where it is long, with its length."""

from __future__ import annotations

import json
from typing import Any, Final, NotRequired, TypedDict, final

from broker.cluster.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from broker.journal.message_json import as_json
from protocol.codegen import codec
from protocol.errors import KafkaError
from protocol.messages.coordinator_records import TransactionLogKey, TransactionLogValue, record_types
from protocol.record_batch import control_type

MOST_CHARACTERS: Final = 2000
JSON_BYTES: Final = 65_536  # of a text that is tried as JSON
FORMS: Final = ("auto", "text", "hex")


@final
class TextRow(TypedDict):
    """Bytes as a text of some form (`is_cut`: not all of it); `note`: why they are not decoded by their `schema`."""

    bytes: int
    form: str
    text: str
    is_cut: bool
    schema: NotRequired[int]
    note: NotRequired[str]


@final
class Note(TypedDict):
    """Why bytes are not decoded by their schema."""

    note: str


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text, or its beginning."""
    return text if len(text) <= most else text[:most]


def shown(data: bytes | None, form: str = "auto") -> TextRow | None:
    """{bytes, form, text}: form is text, json or hex; bytes is the whole length, text may be less of it."""
    if data is None:
        return None
    size, form, text = len(data), form if form != "auto" else _form(data), ""
    if form == "hex":
        text = data[: MOST_CHARACTERS // 2].hex()
    else:
        text = cut(data[: 4 * MOST_CHARACTERS].decode(errors="replace"))
    return {
        "bytes": size,
        "form": form,
        "text": text,
        "is_cut": len(text) < (2 * size if form == "hex" else _length(data)),
    }


def _length(data: bytes) -> int:
    return len(data) if len(data) > 4 * MOST_CHARACTERS else len(data.decode(errors="replace"))


def _form(data: bytes) -> str:
    try:
        text = data[:JSON_BYTES].decode()
    except UnicodeDecodeError as error:
        if len(data) <= JSON_BYTES or error.start < JSON_BYTES - 4:  # not where the cut went through a character
            return "hex"
        text = data[: error.start].decode()
    if any(character < " " and character not in "\t\r\n" for character in text[:MOST_CHARACTERS]):
        return "hex"
    if text[:1] in ("{", "[") and len(data) <= JSON_BYTES:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return "text"
        return "json"
    return "text"


def internal(topic: str, key: bytes | None, value: bytes | None) -> tuple[TextRow | None, TextRow | None] | None:
    """Key and value of a record that a coordinator wrote; None: not of a topic that is known here, or unknown."""
    if key is None or topic not in (TRANSACTIONS_TOPIC, OFFSETS_TOPIC, SHARE_STATE_TOPIC):
        return None
    try:
        key_class, value_class = _types(topic, int.from_bytes(key[:2], "big"))
        found = as_json(codec(key_class, 0).decode(key, 2)[0], 0)
        version = 0 if value is None else int.from_bytes(value[:2], "big")
        decoded = None if value is None else as_json(codec(value_class, version).decode(value, 2)[0], version)
    except (KafkaError, LookupError, ValueError):
        return None
    return _as_shown({"record": key_class.__name__.removesuffix("Key"), **found}, key), _as_shown(decoded, value)


def _types(topic: str, kind: int) -> tuple[Any, Any]:
    """Classes of key and value. Errors: LookupError, KafkaError."""
    if topic == OFFSETS_TOPIC:
        return record_types(kind)
    if topic == TRANSACTIONS_TOPIC:
        return {0: (TransactionLogKey, TransactionLogValue)}[kind]
    from protocol.messages import share_state_records as share  # 0.5 ms: when such a topic is first looked at

    return {0: (share.ShareSnapshotKey, share.ShareSnapshotValue), 1: (share.ShareUpdateKey, share.ShareUpdateValue)}[
        kind
    ]


def _as_shown(decoded: Any, data: bytes | None) -> TextRow | None:
    if data is None:
        return None
    text = json.dumps(decoded)
    return {"bytes": len(data), "form": "internal", "text": cut(text), "is_cut": len(text) > MOST_CHARACTERS}


def marker(key: bytes | None) -> str:
    """What a control record is."""
    return {0: "abort marker", 1: "commit marker", 2: "leader change"}.get(control_type(key or b""), "control record")
