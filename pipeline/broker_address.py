"""The address of a running broker as an --input, kafka://HOST:PORT[,...]: its logs are fetched by the protocol."""

from __future__ import annotations

import re
from typing import Final

from pipeline.errors import PipelineError

SCHEME: Final = "kafka://"
_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\s:/@?#\[\],]+):\d{1,5}")


def is_broker(path: str | None) -> bool:
    """Whether an --input names a running broker."""
    return path is not None and path.startswith(SCHEME)


def bootstrap_of(path: str) -> str:
    """HOST:PORT[,HOST:PORT...] of the address. Errors: PipelineError, without the text: it may hold a password."""
    text = path.removeprefix(SCHEME).rstrip("/")
    if "@" in text:
        raise PipelineError(f"--input {SCHEME}HOST:PORT takes no user and no password: give them by -X or --config")
    if not all(_ADDRESS.fullmatch(each.strip()) for each in text.split(",")):
        raise PipelineError(f"--input is not {SCHEME}HOST:PORT[,HOST:PORT...]")
    return text
