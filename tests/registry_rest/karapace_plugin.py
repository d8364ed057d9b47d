"""What lets Karapace's tests run against another registry: each begins with an empty one, and /master_available, a path
of Karapace's own, is not waited for.

Loaded by the pytest of Karapace's environment; the registry's address is told by --registry-url, an option of its own,
and what empties it by MOMUS_RESET.
"""

from __future__ import annotations

import os
import sys
import urllib.request
from typing import Any


async def _at_once(client: Any) -> None:
    """A registry that answers is the master."""


def pytest_collection_modifyitems() -> None:
    """Called once all modules are imported."""
    for module in list(sys.modules.values()):
        if "repeat_until_master_is_available" in getattr(module, "__dict__", {}):
            module.repeat_until_master_is_available = _at_once  # type: ignore[attr-defined]  # Karapace's


def pytest_runtest_setup() -> None:
    """Called before each test."""
    with urllib.request.urlopen(urllib.request.Request(os.environ["MOMUS_RESET"], b"{}", method="POST")) as reply:
        reply.read()
