"""Reads the key sets (JWKS) that tokens are signed with, from files and URLs, in a thread and again and again."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.request
from typing import TYPE_CHECKING, Any, Final

from broker.config.config_values import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger("momus.security")

LIMIT_S: Final = 5.0
MOST_BYTES: Final = 1 << 20
SCHEMES: Final = ("file:", "http:", "https:")


class KeySets:
    """The key sets of one cluster's listeners."""

    def __init__(self) -> None:
        self.found: dict[str, Mapping[str, Any]] = {}  # by URL
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, urls: Mapping[str, int]) -> None:
        """Read each URL, and again after so many milliseconds. Errors: ConfigError: one is no key set."""
        for url, refresh_ms in urls.items():
            if url not in self.found:
                try:
                    self.found[url] = await asyncio.to_thread(read_key_set, url)
                except (OSError, ValueError) as error:
                    key = "sasl.oauthbearer.jwks.endpoint.url"
                    raise ConfigError(key, url, f"cannot be read: {error}") from None
                self._tasks.append(asyncio.create_task(self._refresh(url, refresh_ms)))

    async def _refresh(self, url: str, refresh_ms: int) -> None:
        while True:
            await asyncio.sleep(refresh_ms / 1000)
            try:
                self.found[url] = await asyncio.to_thread(read_key_set, url)
            except (OSError, ValueError) as error:
                logger.warning("the keys of %s stay as they are: %s", url, error)

    def close(self) -> None:
        """Read no more."""
        for task in self._tasks:
            task.cancel()


def read_key_set(url: str) -> Mapping[str, Any]:
    """A key set. Errors: OSError, ValueError."""
    if not url.startswith(SCHEMES):
        raise ValueError(f"a URL begins with one of {', '.join(SCHEMES)}")
    with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:  # the scheme is checked above
        data = answer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    found = json.loads(data)
    if not isinstance(found, dict) or not isinstance(found.get("keys"), list):
        raise ValueError("it is no key set")
    return found
