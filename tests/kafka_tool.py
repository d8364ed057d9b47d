"""Kafka's tools of the image in this process: their code needs no container."""

from __future__ import annotations

import contextlib
import io
import sys
from unittest.mock import patch

from momus_command import Done

from momus.cli.kafka_tools.main import main
from momus.client.connect_settings import SETTINGS


def run_tool(tool: str, *words: str, data: str = "") -> Done:
    """Run it with this on standard input. Both outputs go to `stdout` in their order, as on a terminal."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    given = io.TextIOWrapper(io.BytesIO(data.encode()), "utf-8")
    code: object = 0
    with patch.object(sys, "stdin", given), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main(words, tool)
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            SETTINGS.clear()
    if isinstance(code, str):
        out.write(f"{code}\n")
        code = 1
    return Done(int(str(code)), out.buffer.getvalue().decode(), "")  # type: ignore[attr-defined]  # a BytesIO
