"""Which of Spark's failures are transient, and how many of them in a row a job retries."""

from __future__ import annotations

from typing import Final

# A Python worker has ten seconds to start, which no setting changes and which a busy machine exceeds. The other two
# come when a task is serialised while another query changes a shared map. A retry resumes at the last position.
TRANSIENT_ERRORS: Final = (
    "Python worker failed to connect back",
    "java.io.OptionalDataException",
    "java.util.ConcurrentModificationException",
)
MAX_RETRIES: Final = 10  # without progress in between


class RetryBudget:
    """Counts transient failures in a row."""

    def __init__(self) -> None:
        self._left = MAX_RETRIES

    def allows_retry(self, error: BaseException, *, has_progressed: bool) -> bool:
        """Whether to retry after this error; has_progressed: work was finished since the last one."""
        if has_progressed:
            self._left = MAX_RETRIES
        self._left -= 1
        return self._left >= 0 and any(known in str(error) for known in TRANSIENT_ERRORS)
