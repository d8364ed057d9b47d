"""Apache Kafka's jars, fetched by Maven once for each list of them in tests/e2e/java/pom.xml."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
from pathlib import Path

JAVA = Path(__file__).parent / "e2e" / "java"


def fetch_jars(profile: str, version: str = "") -> Path:
    """The folder with the jars of a profile: "current" or "old-client". Needs mvn.

    version            of Apache Kafka, in place of the one in the profile "current".
    """
    pom = JAVA / "pom.xml"
    edition = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    folder = JAVA / "target" / f"{version or profile}-{edition}"
    folder.parent.mkdir(exist_ok=True)
    with open(folder.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the workers of pytest-xdist ask at the same time
        if not (folder / "complete").exists():
            command = ["mvn", "-B", "-q", "-f", str(pom), "-P", profile, "dependency:copy-dependencies"]
            command += [f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
            command += [f"-Dkafka.version={version}"] if version else []
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
            (folder / "complete").touch()
    return folder
