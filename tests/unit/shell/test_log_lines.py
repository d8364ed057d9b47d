"""No client can write a line of its own into the log, nor fill it."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from broker.shell import log_lines
from broker.shell.log_lines import LineFormatter, LineLimit

FORGED = "x\n2026-01-01 00:00:00,000 WARNING momus.server all is well\x1b[2J\x9b1m\u202eevil\u2028"


@pytest.fixture
def logged() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def logger(logged):
    logger = logging.Logger("momus.test")
    handler = logging.StreamHandler(logged)
    handler.setFormatter(LineFormatter())
    logger.addHandler(handler)
    return logger


def test_one_record_is_one_line_without_escapes(logger, logged):
    logger.warning("client %s said %r", FORGED, FORGED)
    (line,) = logged.getvalue().splitlines()
    assert line.isprintable()
    assert "\\x1b[2J" in line


def test_lines_of_a_traceback_begin_like_no_record(logger, logged):
    try:
        raise ValueError(FORGED)
    except ValueError:
        logger.exception("failed")
    first, *more = logged.getvalue().splitlines()
    assert first.endswith("failed")
    assert more
    assert all(line.startswith("  ") and line.isprintable() for line in more)


def warn(logger: logging.Logger, text: str, at_s: float) -> None:
    record = logger.makeRecord(logger.name, logging.WARNING, __file__, 1, text, (), None)
    record.created = at_s
    logger.handle(record)


def test_lines_beyond_the_limit_are_counted(logger, logged):
    logger.addFilter(LineLimit(logger))
    for number in range(log_lines.MOST_LINES + 25):
        warn(logger, f"closing connection {number}", 100.0)
    assert len(logged.getvalue().splitlines()) == log_lines.MOST_LINES
    logger.error("an error is written always")
    warn(logger, "closing one more", 100.0 + log_lines.EVERY_S)
    lines = logged.getvalue().splitlines()[log_lines.MOST_LINES :]
    assert [line.split("momus.test ")[1] for line in lines] == [
        "an error is written always",
        "25 more lines like these were left out",
        "closing one more",
    ]


def test_count_is_told_though_no_line_follows(logger, logged, monkeypatch):
    later: list[Callable[[], None]] = []
    loop = SimpleNamespace(call_later=lambda seconds, call: later.append(call))
    monkeypatch.setattr(log_lines, "asyncio", SimpleNamespace(get_running_loop=lambda: loop))
    logger.addFilter(LineLimit(logger))
    for _ in range(log_lines.MOST_LINES + 3):
        warn(logger, "closing", 100.0)
    (tell,) = later
    tell()
    assert logged.getvalue().splitlines()[-1].endswith("3 more lines like these were left out")


@pytest.mark.heavy
def test_count_is_told_by_a_process_that_stops_within_the_second():
    program = (
        "import logging, sys; from broker.shell.log_lines import set_up\n"
        "set_up('WARNING', logging.StreamHandler(sys.stderr))\n"
        "for _ in range(15): logging.getLogger('momus.connection').warning('closing')\n"
    )
    log = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stderr
    assert log.splitlines()[-1].endswith("5 more lines like these were left out")
