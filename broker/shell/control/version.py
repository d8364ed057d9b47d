"""The version of what serves, and of the control plane's words, so that a kit of another version can say so."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
API: Final = 1  # raised when a word of the control plane goes or means something else, not when one is added
