"""Long jobs that run between turns, a step at a time."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from typing import Final

from protocol.errors import KafkaError
from storage.files.errors import StorageError

logger: Final = logging.getLogger("momus.jobs")


class Jobs:
    """Jobs as iterators: each `next` is one step of at most a few milliseconds. Jobs run round robin."""

    __slots__ = ("_hurried", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[Iterator[None]] = deque()
        self._hurried: Iterator[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def waiting(self) -> tuple[Iterator[None], ...]:
        """The jobs that are not finished."""
        return tuple(self._waiting)

    def has_any(self, jobs: tuple[Iterator[None], ...]) -> bool:
        """Whether one of these is not finished."""
        return any(each in self._waiting for each in jobs)

    def add(self, steps: Iterator[None]) -> None:
        """Run the steps of a job between turns."""
        self._waiting.append(steps)

    def drop(self, steps: Iterator[None]) -> None:
        """Run this job no more: the caller does what is left of it."""
        if steps in self._waiting:
            self._waiting.remove(steps)

    def hurry(self, steps: Iterator[None]) -> None:
        """Run this job before all others, because a client waits for it."""
        if steps is not self._hurried and steps in self._waiting:
            self._hurried = steps
            self._waiting.remove(steps)
            self._waiting.appendleft(steps)

    @property
    def is_hurried(self) -> bool:
        """Whether a client waits for the next step."""
        return bool(self._waiting) and self._waiting[0] is self._hurried

    def step(self) -> bool:
        """Run one step of the first job. False: there is no job."""
        if not self._waiting:
            return False
        steps = self._waiting[0]
        try:
            next(steps)
            if steps is not self._hurried and self._waiting[0] is steps:
                self._waiting.rotate(-1)
        except StopIteration:
            self._waiting.remove(steps)
        except (KafkaError, OSError, StorageError) as error:
            self._waiting.remove(steps)
            logger.error("background job failed: %s", error)
        except Exception:
            self._waiting.remove(steps)
            logger.exception("background job failed")
        return True
