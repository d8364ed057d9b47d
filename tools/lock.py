"""Writes tools/lock.txt and tools/build-lock.txt: what image and binary bring, and what builds momus, by hashes.

    python tools/lock.py      after a version was raised in tools/constraints.txt; needs uv (pip install uv)

tools/constraints.txt names the versions, by which the tests run too; uv asks the index for the hashes of all files of
each, so that one lock serves every platform. What is installed by a lock is installed with --require-hashes and
--no-deps: a file that another person has put in its place is refused, and nothing comes that is not in the list.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
LOCK, BUILD_LOCK = HERE / "lock.txt", HERE / "build-lock.txt"
EXTRAS = ("security", "otel", "registry", "yaml")  # whose needs constraints.txt names beside those of momus itself
ABOUT = "# Written by tools/lock.py. {what}\n"
WHAT = {
    LOCK: "What image and binary bring: the versions of constraints.txt, with the hashes of their files.",
    BUILD_LOCK: "What builds the wheel of momus for them, with the hashes of its files.",
}


def compiled(lines: list[str], *options: str) -> str:
    """What uv makes of requirements. Errors: SystemExit, with what it complains of."""
    command = ["uv", "pip", "compile", "-", "--generate-hashes", "--universal", "--python-version", "3.11"]
    command += ["--no-header", "--no-annotate", "--quiet", *options]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def main() -> None:
    """Write both."""
    pinned = [each for each in (HERE / "constraints.txt").read_text().splitlines() if re.match(r"\w", each)]
    needs = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["build-system"]["requires"]
    made = {LOCK: compiled(pinned, "--no-deps"), BUILD_LOCK: compiled(needs)}
    for path, text in made.items():
        path.write_text(ABOUT.format(what=WHAT[path]) + text)


if __name__ == "__main__":
    main()
