"""What right services do not survive, and why that is their client's: each was seen before Apache Kafka 4.4.0 too."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

# pattern of a test, pattern of a schedule -> why
EXPLAINED: dict[tuple[str, str], str] = {}


def reason(test: str, run: dict[str, Any]) -> str:
    """Why a run went wrong; "": it is not known."""
    for (of_test, of_schedule), why in EXPLAINED.items():
        if fnmatch(test, of_test) and fnmatch(run["schedule"], of_schedule):
            return why
    return ""
