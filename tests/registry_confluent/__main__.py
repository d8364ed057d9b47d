"""`make registry-confluent`: Confluent's own tests of its registry, run against momus'.

    ARGS="--sources DIR --kafka HOST:PORT --only CLASS"

The tests are compiled from Confluent's sources (build.py says from which), into --work; --sources is a folder that has
them already. With --kafka, the address of an Apache Kafka, they are run against Confluent's own registry too, and what
it fails is no failure of momus. Each other test that fails must be named in explained.py, with the reason; what is
named there and passes is told. The exit code is 1 where a failure has none. A run takes two to four minutes, and a
build two.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from build import built  # noqa: E402 - found by the line above
from explained import EXPLAINED  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above
from tests.foreign_results import outcomes, reported, say  # noqa: E402 - found by the line above

PACKAGE: Final = "io.confluent.kafka.schemaregistry"
CLASSES: Final = (
    *("rest.RestApiClusterTest", "rest.RestApiCompatibilityClusterTest", "rest.RestApiModeClusterTest"),
    *("rest.RestApiTransitiveCompatibilityClusterTest", "rest.RestApiContextClusterTest"),
    *("rest.RestApiReferenceVersionsStrictClusterTest", "rest.RestApiRegisterSchemaTagsClusterTest"),
    *("rest.RestApiRejectEmptySubjectClusterTest", "rest.RestApiRequestBodySizeClusterTest"),
    *("rest.RestApiSchemaTooLargeClusterTest", "rest.json.RestApiClusterTest", "rest.protobuf.RestApiClusterTest"),
    *("rest.RestApiAssociationTest", "protobuf.rest.RestApiSerializerTest", "avro.AvroCompatibilityTest"),
    *("client.MockSchemaRegistryClientTest", "client.CachedSchemaRegistryClientTest"),
)


def run(path: str, only: str, momus: str, kafka: str) -> dict[str, str]:
    """The tests, and what became of them.

    momus   the program, which is its registries' Kafka too; "": Confluent's registry is tested, before `kafka`.
    """
    with tempfile.TemporaryDirectory() as made:
        words = ["java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", f"-Dkafka={kafka}"]
        words += [f"-Dportbase={31300 if momus else 31600}", *([f"-Dmomus={momus}"] if momus else [])]
        words += ["-cp", path, "org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"]
        words += ["--details=none", f"--reports-dir={made}"]
        words += [word for each in CLASSES if only in each for word in ("-c", f"{PACKAGE}.{each}")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        reports = sorted(Path(made).glob("TEST-*.xml"))
        rows = (row for report in reports for row in outcomes(report))
        found = {f"{group.removeprefix(f'{PACKAGE}.')}.{name}": why for group, name, why in rows}
        assert found, done.stdout[-3000:] + done.stderr[-3000:]
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, help="a folder that has schema-registry, rest-utils and common")
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "momus" / "registry_confluent")
    parser.add_argument("--kafka", default="", help="an Apache Kafka, for Confluent's own registry")
    parser.add_argument("--momus", default=str(Path(sys.executable).with_name("momus")), help="the program")
    parser.add_argument("--only", default="", help="a part of a class's name")
    options = parser.parse_args()
    path = built(options.sources, options.work)
    theirs = run(path, options.only, "", options.kafka) if options.kafka else {}
    with Broker() as broker:  # for the tests that want a Kafka and no registry
        found = run(path, options.only, options.momus, broker.bootstrap_servers)
    if theirs:
        say(f"Confluent's own registry passes {sum(not why for why in theirs.values())} of {len(theirs)}")
    return not reported("Confluent's", found, EXPLAINED, theirs, is_whole=not options.only)


if __name__ == "__main__":
    sys.exit(main())
