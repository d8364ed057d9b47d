"""The user's cache directory, for files that are fetched or made once."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """`$XDG_CACHE_HOME/momus/NAME`, by default `~/.cache/momus/NAME`; created when absent."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "momus" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
