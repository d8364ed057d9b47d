"""Keys, values and header values of records in JSON: one form for the control plane and the command line.

A text where the bytes are UTF-8, {"base64": ...} where they are not, null for null.
"""

from __future__ import annotations

import base64
from typing import Any


def to_json(data: bytes | None) -> Any:
    """Bytes as a text, or as {"base64": ...} where they are none."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def from_json(value: Any) -> bytes | None:
    """A text, {"base64": ...} or null as bytes. Errors: ValueError: it is none of them, or not base64."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, dict) or not isinstance(value.get("base64"), str):
        raise ValueError('not a text, null or {"base64": "..."}')
    return base64.b64decode(value["base64"], validate=True)
