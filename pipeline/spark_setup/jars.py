"""The jars of Kafka and Delta for Spark: pinned, fetched once by the Ivy that PySpark ships, checked by SHA-256.

`spark.jars.packages` would fetch them with their dependencies, but the connector depends on a token provider of its own
version, which Maven Central does not have for every release, and then nothing resolves. So each jar is named here and
fetched alone. The token provider is the newest available one (4.0.0); plain connections never call it.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import PipelineError
from pipeline.spark_setup.cache import cache_folder
from pipeline.spark_setup.key_store import PASSWORD, write_key_store


class Jar(NamedTuple):
    """One artifact of Maven Central and the hash of its bytes."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name of the file in Maven Central."""
        return f"{self.artifact}-{self.version}.jar"


KAFKA = (
    Jar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    Jar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.2",
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    ),
    Jar(
        "org.apache.commons",
        "commons-pool2",
        "2.13.1",
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    ),
)

DELTA = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)


def fetch(jars: Iterable[Jar], java_home: Path) -> list[Path]:
    """Paths of the jars in the user's cache; those that are absent or have another hash are fetched.

    Errors:  PipelineError: a jar cannot be fetched, or what was fetched has another hash.
    """
    folder = cache_folder("jars")
    found = []
    for jar in jars:
        path = folder / jar.file_name
        if not path.exists() or _sha256(path) != jar.sha256:
            _fetch(jar, path, java_home)
        found.append(path)
    return found


def _fetch(jar: Jar, path: Path, java_home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        output = _run_ivy(jar, Path(scratch), java_home, [])
        if output is not None and "PKIX" in output and write_key_store(Path(scratch) / "trusted"):
            trusted = [f"-Djavax.net.ssl.trustStore={scratch}/trusted", "-Djavax.net.ssl.trustStoreType=JKS"]
            output = _run_ivy(
                jar, Path(scratch), java_home, [*trusted, f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"]
            )
        if output is not None:
            raise PipelineError(
                f"cannot fetch {jar.group}:{jar.artifact}:{jar.version} from Maven Central; "
                f"without a network, put {jar.file_name} into {path.parent}\n{output}"
            )
        fetched = Path(scratch) / jar.file_name
        if (found := _sha256(fetched)) != jar.sha256:
            raise PipelineError(f"{jar.file_name} has the SHA-256 {found}, not {jar.sha256}: it is not used")
        fetched.replace(path)


def _run_ivy(jar: Jar, scratch: Path, java_home: Path, options: list[str]) -> str | None:
    """Fetch the jar into scratch; returns None, or the last lines of Ivy's output if that failed."""
    command = [str(java_home / "bin" / "java"), *options, "-jar", str(_ivy()), "-ivy", "/dev/null"]
    command += ["-dependency", jar.group, jar.artifact, jar.version, "-notransitive", "-confs", "default"]
    command += ["-cache", f"{scratch}/ivy", "-retrieve", f"{scratch}/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode == 0 and (scratch / jar.file_name).exists():
        return None
    return "\n".join((done.stdout + done.stderr).splitlines()[-20:])


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _ivy() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise PipelineError("pyspark is not installed")
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
