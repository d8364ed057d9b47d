"""Says what a new release of Apache Kafka changed, and what of it is not served here: docs/new-release.md.

    python tools/new_release.py 4.3.1 4.4.0           `make new-release ARGS="4.3.1 4.4.0"`; a minute on the first run
    python tools/new_release.py 4.3.1 4.4.0 --keys    writes tests/conformance/kafka_keys.txt of the newer one, too

Needs java and mvn: kafka-server with what it depends on comes from Maven Central. The releases are asked by their own
classes (ReleaseTable.java, ReleaseSettings.java); messages are the JSON files in their jars. From 4.3 on.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
REPOSITORY = HERE.parent
sys.path[:0] = [str(HERE), str(REPOSITORY)]  # run as a program

import release_compare  # noqa: E402  # the path comes first
from release_compare import Description, Schema, Served, Setting  # noqa: E402  # the same

from broker.config.features import supported  # noqa: E402  # the same
from broker.config.key_effects import OBEYED, WITHOUT_EFFECT  # noqa: E402  # the same
from broker.config.refused_keys import REFUSED  # noqa: E402  # the same
from broker.config.settings import GROUP_KEYS  # noqa: E402  # the same
from broker.handlers import ABSENT, make_routes  # noqa: E402  # the same
from protocol.api import api_label, message_class  # noqa: E402  # the same
from protocol.declare import DECLARED  # noqa: E402  # the same
from protocol.errors import ErrorCode  # noqa: E402  # the same

KEYS = REPOSITORY / "tests" / "conformance" / "kafka_keys.txt"
KEYS_HEAD = "# The keys of Apache Kafka {}: B of brokers ({}), T of topics ({})."
KEYS_FROM = "AbstractKafkaConfig.CONFIG_DEF", "LogConfig.configDefCopy"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>momus</groupId>
  <artifactId>new-release</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-server</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
</project>
"""
SCHEMAS = re.compile(r"(common/)?(message|metadata)/\w+\.json")


def run(*command: object) -> str:
    """What a program prints. Errors: SystemExit: it fails, with its words."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def describe(version: str, folder: Path) -> Description:
    """A release, by its jars and its classes. Errors: SystemExit: it cannot be fetched, or its classes are others."""
    jars, classes, pom = folder / version, folder / f"{version}-classes", folder / f"{version}.xml"
    classes.mkdir()
    pom.write_text(POM.format(version=version))
    run("mvn", "-B", "-q", "-f", pom, COPY, f"-DoutputDirectory={jars}", "-DincludeScope=runtime")
    run("javac", "-d", classes, "-cp", f"{jars}/*", HERE / "ReleaseTable.java", HERE / "ReleaseSettings.java")
    table = run("java", "-cp", f"{classes}:{jars}/*", "ReleaseTable", "broker")
    settings: dict[str, dict[str, Setting]] = {"broker": {}, "topic": {}, "group": {}}
    errors = {}
    for line in run("java", "-cp", f"{classes}:{jars}/*", "ReleaseSettings").splitlines():
        word, *rest = line.split("\t")
        if word == "setting":
            settings[rest[0]][rest[1]] = Setting(*rest[2:])
        else:
            errors[int(rest[0])] = _error(rest[1], rest[2] == "true")
    features = re.findall(r"^feature (\S+) (\d+) (\d+) \d+$", table, re.MULTILINE)
    return Description(
        version,
        {int(key): versions for key, versions in re.findall(r"(\d+)=(\d+-\d+)", table)},
        _schemas(jars),
        settings,
        errors,
        {name: f"{lowest}-{highest}" for name, lowest, highest in features if highest != "0"},
    )


def _error(name: str, is_retriable: bool) -> str:
    return f"{name} retriable" if is_retriable else name


def _schemas(jars: Path) -> dict[str, Schema]:
    """The messages and records in all jars of the release itself."""
    found = {}
    for jar in sorted(jars.glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in filter(SCHEMAS.fullmatch, archive.namelist()):
                title, schema = release_compare.read_schema(archive.read(name).decode())
                found[title] = schema
    return found


def served() -> Served:
    """What is served here, by the tables that the broker serves with."""
    routes = make_routes()
    with suppress(LookupError):
        message_class("")  # which imports every module of messages
    ranges = supported((int(each.api_key), each.min_version, each.max_version) for each in routes)
    return Served(
        {int(each.api_key): f"{each.min_version}-{each.max_version}" for each in routes},
        frozenset(int(key) for keys, _ in ABSENT for key in keys),
        {name: cls.MAX_VERSION for name, cls in DECLARED.items()},
        frozenset([*OBEYED, *WITHOUT_EFFECT, *REFUSED]),
        frozenset(GROUP_KEYS),
        {int(each): _error(each.name, each.retriable) for each in ErrorCode},
        {name: f"{lowest}-{highest}" for name, (lowest, highest) in ranges.items()},
    )


def keys_text(release: Description) -> str:
    """kafka_keys.txt of a release."""
    rows = [f"{kind[0].upper()} {key}\n" for kind in ("broker", "topic") for key in sorted(release.settings[kind])]
    return f"{KEYS_HEAD.format(release.name, *KEYS_FROM)}\n{''.join(rows)}"


def main() -> None:
    """Fetch both, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", help="the release that is served here, as 4.3.1")
    parser.add_argument("new")
    parser.add_argument("--keys", action="store_true", help="write kafka_keys.txt of the newer one")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        old, new = (describe(version, Path(temporary)) for version in (args.old, args.new))
    lines = [f"# what {new.name} changed since {old.name}", *release_compare.compare(old, new, api_label)]
    lines += [
        "",
        f"# what is served here, and what {new.name} has",
        *release_compare.compare_served(new, served(), api_label),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    if args.keys:
        KEYS.write_text(keys_text(new))


if __name__ == "__main__":
    main()
