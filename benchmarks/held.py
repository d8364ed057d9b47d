"""For how long an iteration of the broker's loop keeps its processor: what others can do to no request is wait longer.

    python -m benchmarks.held FILE serve --listen 127.0.0.1:0 ...

Runs momus on asyncio's loop and writes the longest iteration so far into FILE, as the milliseconds of processor time of
its thread, and what was called in it longest. On a busy machine the wait of a request depends on who else runs; this
does not. Whoever empties FILE begins again. `benchmarks.hostile --held` uses it.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple


def measure(path: Path) -> None:
    """Measure each iteration from now on."""
    run_once: Any = asyncio.base_events.BaseEventLoop._run_once  # type: ignore[attr-defined]  # there is no other way
    run: Any = asyncio.events.Handle._run
    longest_s, longest = 0.0, (0.0, "")

    def handled(handle: asyncio.Handle) -> None:
        nonlocal longest
        begin_s = time.thread_time()
        run(handle)
        took_s = time.thread_time() - begin_s
        if took_s > longest[0]:
            longest = took_s, repr(handle)

    def iterated(loop: Any) -> None:
        nonlocal longest_s, longest
        begin_s = time.thread_time()
        run_once(loop)
        took_s = time.thread_time() - begin_s
        if took_s > longest_s or not path.stat().st_size:
            longest_s = took_s
            path.write_text(f"{took_s * 1000:.2f} {longest[1]}")
        longest = (0.0, "")

    asyncio.base_events.BaseEventLoop._run_once = iterated  # type: ignore[attr-defined]  # as above
    asyncio.events.Handle._run = handled  # type: ignore[method-assign]  # as above


class Measured(NamedTuple):
    """A broker whose iterations are measured: HOST:PORT of its listener, registry and control endpoint."""

    bootstrap_servers: str
    registry: str
    control: str
    path: Path

    def begin(self) -> None:
        """Forget the longest so far."""
        self.path.write_text("")

    def longest(self) -> str:
        """Milliseconds, and what took longest."""
        return self.path.read_text()


@contextmanager
def measured(folder: Path) -> Iterator[Measured]:
    """A broker until the end of the block."""
    path = folder / "held"
    path.write_text("")
    command = [sys.executable, "-m", "benchmarks.held", str(path), "serve", "--listen", "127.0.0.1:0"]
    command += ["--flush", "memory", "--log-level", "error", "--registry", "127.0.0.1:0", "--control", "127.0.0.1:0"]
    process = subprocess.Popen([*command, "--data-dir", str(folder / "data")], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = {}
        while len(said) < 3:
            _, what, place = process.stdout.readline().split()
            said[what] = place.removeprefix("http://")
        yield Measured(said["ready"], said["registry"], said["control"], path)
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Run `momus` with the arguments after FILE."""
    path = Path(sys.argv.pop(1))
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # so that there is none
    measure(path)
    from momus.cli.main import main as momus  # only now: its loop is asyncio's

    momus()


if __name__ == "__main__":
    main()
