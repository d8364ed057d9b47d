"""What the scripts of clients of registries share: a broker with a registry, and a program that uses both."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from momus import Broker

LIMIT_S = 300


def run_beside_registry(command: Sequence[object], *, broker: bool = True, cwd: Path | None = None) -> None:
    """Run a program with the addresses of a broker and of its registry; `broker` False: of the registry alone.

    Errors: AssertionError, with the end of what the program has said.
    """
    with Broker(registry=True) as momus:
        addresses = [momus.bootstrap_servers] * broker + [momus.registry_url]
        words = [str(word) for word in command] + addresses
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, cwd=cwd, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        assert momus.log == "", momus.log
