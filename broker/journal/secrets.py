"""Takes secrets out of frames before the journal keeps them: passwords, tokens, salted keys, secret settings."""

from __future__ import annotations

import re
from typing import Any, Final

from protocol.api import ApiKey, request_class, response_class
from protocol.codegen import codec
from protocol.declare import Message
from protocol.errors import MalformedError
from protocol.header import decode_request_header, decode_response_header

SECRET_APIS: Final = frozenset(
    int(key)
    for key in (
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_TOPICS,  # its settings
    )
)
_FIELDS: Final = ("auth_bytes", "salted_password", "salt", "hmac")
_SETTING: Final = re.compile(r"password|secret|jaas|credential|private|keystore\.key", re.IGNORECASE)
HIDDEN: Final = "[hidden]"


def is_secret_setting(key: str) -> bool:
    """Whether the value of a setting of this name may be a secret."""
    return _SETTING.search(key) is not None


def without_secrets(frame: bytes, api_key: int, api_version: int, *, is_reply: bool = False) -> bytes:
    """A frame, size field included, in which secrets are empty. Of one that cannot be read the head alone is left."""
    try:
        if is_reply:
            _, start = decode_response_header(frame[4:], api_key, api_version)
            cls: Any = response_class(api_key)
        else:
            _, start = decode_request_header(frame[4:], 0)
            cls = request_class(api_key)
        message, _ = codec(cls, api_version).decode(frame[4:], start)
    except (MalformedError, LookupError, IndexError, ValueError):
        body = frame[4 : 8 if is_reply else 12]
    else:
        _hide(message)
        body = frame[4 : 4 + start] + codec(cls, api_version).encode(message)
    return len(body).to_bytes(4, "big") + body


def _hide(message: Message) -> None:
    name = getattr(message, "name", None)
    for each in message.FIELDS:
        value = getattr(message, each.name)
        if each.name in _FIELDS and isinstance(value, bytes):
            setattr(message, each.name, b"")
        elif each.name == "value" and isinstance(value, str) and isinstance(name, str) and is_secret_setting(name):
            setattr(message, each.name, HIDDEN)
        elif isinstance(value, Message):
            _hide(value)
        elif isinstance(value, list):
            for inner in value:
                if isinstance(inner, Message):
                    _hide(inner)
