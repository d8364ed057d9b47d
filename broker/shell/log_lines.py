"""The form of the log's lines, and how many there are.

One record is one line, whatever a client has put into its names. What clients can cause at will is written so many
times a second, and then counted.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
from contextlib import suppress
from typing import Final

from broker.base.visible import visible

FORM: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


class LineFormatter(logging.Formatter):
    """Escapes control characters. The lines of a traceback are indented, so that none looks like a record."""

    def __init__(self) -> None:
        super().__init__(FORM)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        """The message on one line."""
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802  # logging's name
        """A traceback, indented."""
        lines = super().formatException(ei).split("\n")  # type: ignore[arg-type]  # what logging hands over
        return "\n".join(f"  {visible(line)}" for line in lines)


LIMITED: Final = ("momus.connection", "momus.security")  # what any stranger can fill the log with
MOST_LINES: Final = 10  # a second, of each
EVERY_S: Final = 1.0


class LineLimit(logging.Filter):
    """Lets some lines a second of a logger through. A line says a second later, or at the end, how many it left out."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self._logger = logger
        self._began_s = 0.0
        self._lines = self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        if record.levelno >= logging.ERROR:
            return True
        if not 0 <= record.created - self._began_s < EVERY_S:
            self.tell()
            self._began_s, self._lines = record.created, 0
        self._lines += 1
        if self._lines <= MOST_LINES:
            return True
        self._left_out += 1
        if self._left_out == 1:
            with suppress(RuntimeError):  # outside of the loop the next line tells it
                asyncio.get_running_loop().call_later(EVERY_S, self.tell)
        return False

    def tell(self) -> None:
        """Say how many were left out."""
        left_out, self._left_out = self._left_out, 0
        if left_out:
            self._lines = 0
            self._logger.warning("%d more lines like these were left out", left_out)


def set_up(level: str, handler: logging.Handler) -> None:
    """Write what the process logs with this handler."""
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level, handlers=[handler])
    for name in LIMITED:
        logger = logging.getLogger(name)
        limit = LineLimit(logger)
        logger.addFilter(limit)
        atexit.register(limit.tell)  # a process that stops within that second
