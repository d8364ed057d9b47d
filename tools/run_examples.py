"""Runs what another project would, from the built wheel: the suites of examples/, and the table of tests/installed.

    python tools/run_examples.py [FOLDER]       build/examples unless told otherwise

Part of `make test-examples`. pip needs its index, for the clients, pytest with its plugins, and what the
requirements.txt of a suite names. The table's lines run in an environment with momus alone, those that need the extras
or pytest in that of the suites.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CONSTRAINTS = REPOSITORY / "tools" / "constraints.txt"
CLIENTS = ("aiokafka", "confluent-kafka", "kafka-python", "pytest", "pytest-asyncio", "pytest-xdist")
SUITES = ("orders", "billing", "faststream_shipping", "fastapi_shop", "avro_payments")


def main(folder: Path) -> None:
    """Build, install, run."""
    begin_s = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    quiet = ("--quiet", "--disable-pip-version-check")
    _run(sys.executable, "-m", "pip", "wheel", *quiet, "--no-deps", "-w", str(folder), str(REPOSITORY))
    (wheel,) = folder.glob("momus-*.whl")
    _run(sys.executable, "-m", "venv", str(folder / "venv"))
    python = str(folder / "venv" / "bin" / "python")
    # Not compiled: most of it is never imported, and what is compiles itself.
    pip = (python, "-m", "pip", "install", *quiet, "--no-compile", "--prefer-binary", "-c", str(CONSTRAINTS))
    wanted = [("-r", str(file)) for file in sorted((REPOSITORY / "examples").glob("*/requirements.txt"))]
    _run(*pip, f"{wheel}[otel,registry,security,yaml]", *CLIENTS, *(word for words in wanted for word in words))
    sys.stderr.write(f"installed in {time.monotonic() - begin_s:.0f} s\n")
    _run(sys.executable, "-m", "venv", str(folder / "bare"))
    _run(str(folder / "bare" / "bin" / "python"), *pip[1:], str(wheel))
    for kind, environment in (("--bare", "bare"), ("--extras", "venv")):
        _run(
            sys.executable, str(REPOSITORY / "tests" / "installed"), str(folder / environment / "bin"), kind, cwd=folder
        )
    for suite in SUITES:  # elsewhere: in the checkout they would find its packages
        shutil.copytree(REPOSITORY / "examples" / suite, folder / suite)
        _run(python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", cwd=folder / suite)
    sys.stderr.write(f"all examples in {time.monotonic() - begin_s:.0f} s\n")


def _run(*command: str, cwd: Path | None = None) -> None:
    if subprocess.run(command, cwd=cwd, check=False).returncode:
        sys.exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else REPOSITORY / "build" / "examples")
