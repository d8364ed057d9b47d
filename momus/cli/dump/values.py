"""Keys and values of records as a file of `--load` has them, so that the same bytes come of it; and without content."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from broker.load.values import compact


def shown(data: bytes | None) -> Any:
    """JSON where it is an object or a list, a text where it is UTF-8, else {"base64": ...}; null for none."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
    if text[:1] in ("{", "["):
        try:
            value = json.loads(text)
            is_same = compact(value) == text
        except (ValueError, RecursionError):
            return text
        if is_same and isinstance(value, (dict, list)) and not _reads_as_bytes(value):
            return value
    return text


def _reads_as_bytes(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"base64"}


def masked(value: Any) -> Any:
    """What `shown` returns, as long as it was, without letters, digits and numbers; names of fields stay."""
    if isinstance(value, str):
        return re.sub(r"\d", "0", re.sub(r"[^\W\d]", "x", value))
    if isinstance(value, dict):
        if _reads_as_bytes(value):
            size = len(base64.b64decode(value["base64"]))
            return {"base64": base64.b64encode(b"\xff" * size).decode()}
        return {name: masked(each) for name, each in value.items()}
    if isinstance(value, list):
        return [masked(each) for each in value]
    return value if value is None else False if isinstance(value, bool) else 0


def shown_headers(headers: list[tuple[str, bytes | None]], *, is_masked: bool) -> Any:
    """An object, or pairs where a name is there twice."""
    pairs = [[name, masked(shown(value)) if is_masked else shown(value)] for name, value in headers]
    names = {name for name, _ in headers}
    return dict(pairs) if len(names) == len(pairs) else pairs
