"""What a pipeline job says instead of a traceback."""

from __future__ import annotations


class PipelineError(Exception):
    """Something the user can mend; its text is the one sentence that says what and how."""
