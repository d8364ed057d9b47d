"""Which errors pytest shows without the frames of the kit: those that say what a test did wrong, or what is not so."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def hides(excinfo: Any) -> bool:
    """Whether an error is the kit's own sentence. `excinfo`: pytest's ExceptionInfo.

    A module that has this as `__tracebackhide__` is left out of the traceback then; any other error shows all frames.
    """
    kind = type(excinfo.value)
    return kind is ValueError or kind.__module__.partition(".")[0] == "momus"
