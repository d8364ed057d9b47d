"""Where the pipeline keeps what it fetched or made once: the user's cache directory."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """`$XDG_CACHE_HOME/momus/NAME`, or the same below `~/.cache`; made when absent."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "momus" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
