"""The checks of Apache Kafka's Java clients, compiled, and run against one broker and against three."""

from __future__ import annotations

import fcntl
import hashlib
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
JVM = ("java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF")
CHECKS = ("Checks", "Records", "Groups", "Admins", "Transactions", "Ledger")
LEAST = 30  # checks that have a result
LIMIT_S = 500


def compiled(libs: str, *names: str) -> str:
    """Class path of our Java sources and of the libraries they were compiled against."""
    sources = [HERE / "src" / f"{name}.java" for name in names]
    edition = hashlib.sha256(libs.encode() + b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    folder = HERE / "target" / f"classes-{edition}"
    folder.parent.mkdir(exist_ok=True)
    with open(HERE / "target" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            command = ["javac", "-nowarn", "-d", str(folder), "-cp", libs, *map(str, sources)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
            assert done.returncode == 0, done.stderr
            (folder / "complete").touch()
    return f"{folder}:{libs}"


def results_of_all_checks(classes: str, one: str, three: str) -> dict[str, str]:
    """Each check's name, and "PASS name" or "FAIL name" with the trace below it."""
    command = [*JVM, "-cp", classes, "Checks", one, three]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [each for each in re.split(r"^(?=PASS |FAIL )", done.stdout, flags=re.MULTILINE) if each.strip()]
    found = {each.split()[1]: each for each in told}
    assert len(found) == len(told) > LEAST, done.stdout
    return found
