"""What right services do not survive, and why that is their client's and not momus'."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

AIOKAFKA_STOP = (
    "aiokafka 0.14: stop() awaits a fetch that it has cancelled while that one slept before its next try, and ends with"
    " CancelledError (Fetcher.close and _proc_fetch_request); nothing of it is the broker's"
)
# pattern of a test, pattern of a schedule -> why
EXPLAINED: dict[tuple[str, str], str] = {
    ("right.py::test_[!c]*", "LeaveGroup[[]group=billing[]]#* make_event restart *"): AIOKAFKA_STOP,
}


def reason(test: str, run: dict[str, Any]) -> str:
    """Why a run went wrong; "": it is not known."""
    for (of_test, of_schedule), why in EXPLAINED.items():
        if fnmatch(test, of_test) and fnmatch(run["schedule"], of_schedule):
            return why
    return ""
