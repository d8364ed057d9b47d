"""The exception whose text a job prints instead of a traceback."""

from __future__ import annotations


class PipelineError(Exception):
    """An error that the user can fix; its text is one sentence that says what is wrong and how to fix it."""
