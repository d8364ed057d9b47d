"""Writes broker/config/release_tables.py: what each Apache Kafka release answers to ApiVersions, by its own classes.

Needs java and mvn: the releases' kafka-clients and kafka-server-common come from Maven Central. Releases before 3.3 are
asked as brokers with ZooKeeper, later ones as KRaft brokers.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

HERE = Path(__file__).parent
TARGET = HERE.parent / "broker" / "config" / "release_tables.py"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
KRAFT_SINCE = (3, 3)
PATCHES = (
    *("2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2"),
    *("3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1"),
    *("4.0.1", "4.1.1", "4.2.0", "4.3.1", "4.4.0"),
)
HEAD = '''"""What each Apache Kafka release answers to ApiVersions. Written by tools/release_tables.py; do not edit.

A release is (name, APIs, features). APIs are `key:oldest-newest`; a release names those that differ from the one before
it, and `key:gone` those that it no longer has. Features are `name:lowest-highest-default`, all of them.

Source: ApiKeys of kafka-clients and Feature and MetadataVersion of kafka-server-common:
{patches}
"""

from typing import Final

RELEASES: Final = (
'''


def ask(patch: str, folder: Path) -> tuple[dict[int, str], list[str]]:
    """(API key -> versions, features) of a release."""
    is_kraft = tuple(map(int, patch.split(".")))[:2] >= KRAFT_SINCE
    jars = folder / patch
    for name in ("kafka-clients", "kafka-server-common")[: 1 + is_kraft]:
        words = [f"-Dartifact=org.apache.kafka:{name}:{patch}", f"-DoutputDirectory={jars}"]
        subprocess.run(["mvn", "-B", "-q", COPY, *words], check=True, stdout=sys.stderr)
    subprocess.run(
        ["mvn", "-B", "-q", COPY, "-Dartifact=org.slf4j:slf4j-api:1.7.36", f"-DoutputDirectory={folder}"],
        check=True,
        stdout=sys.stderr,
    )
    command = ["java", "-cp", f"{folder}:{folder}/*:{jars}/*", "ReleaseTable", "broker" if is_kraft else "zk"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    apis = {int(key): versions for key, versions in re.findall(r"(\d+)=(\d+-\d+)", printed)}
    features = re.findall(r"^feature (\S+) (\d+) (\d+) (\d+)$", printed, re.MULTILINE)
    # one that is only offered at level 0 is not offered
    return apis, [f"{name}:{low}-{high}-{default}" for name, low, high, default in features if high != "0"]


def main() -> None:
    """Ask every release, and write the table."""
    rows = []
    before: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run(["javac", "-d", str(folder), str(HERE / "ReleaseTable.java")], check=True)
        for patch in PATCHES:
            apis, features = ask(patch, folder)
            changed = [f"{key}:{versions}" for key, versions in apis.items() if before.get(key) != versions]
            changed += [f"{key}:gone" for key in sorted(before.keys() - apis.keys())]
            before = apis
            rows.append((patch.rpartition(".")[0], changed, features))
    with open(TARGET, "w", encoding="utf-8") as file:
        patches = "\n".join(textwrap.wrap(", ".join(PATCHES), 110, initial_indent=" " * 8, subsequent_indent=" " * 8))
        file.write(HEAD.format(patches=patches))
        for name, changed, features in rows:
            file.write(f'    (\n        "{name}",\n')
            for words in (changed, features):
                lines = textwrap.wrap(" ".join(words), 100, break_on_hyphens=False) or [""]
                file.write("".join(f'        "{line}{" " if line is not lines[-1] else ""}"\n' for line in lines))
                file.write("        ,\n")
            file.write("    ),\n")
        file.write(")\n")
    subprocess.run(["ruff", "format", "-q", str(TARGET)], check=True)


if __name__ == "__main__":
    main()
