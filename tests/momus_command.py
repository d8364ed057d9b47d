"""The `momus` command in this process: half a second sooner than in one of its own."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import NamedTuple
from unittest.mock import patch

from momus.cli.main import main
from momus.client.connect_settings import SETTINGS


class Done(NamedTuple):
    """What a command printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def run_momus(*words: str, data: str = "") -> Done:
    """Run `momus WORDS` with this on standard input."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    given = io.TextIOWrapper(io.BytesIO(data.encode()), "utf-8")
    code: object = 0
    with (
        patch.object(sys, "argv", ["momus", *words]),
        patch.object(sys, "stdin", given),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            SETTINGS.clear()  # of what this process asks a broker next
    shown = []
    for stream in (out, err):
        stream.flush()
        shown.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]  # a BytesIO
    return Done(int(str(code)), *shown)
