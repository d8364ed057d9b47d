"""When the made-up figures of the page begin."""

from __future__ import annotations

BEGIN = 1_800_000_000_000
