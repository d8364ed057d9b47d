"""Compiles Confluent's registry and its tests from their sources: its jars are in no public repository of Maven.

The sources are those of schema-registry, rest-utils and common (COMMITS, 8.5): cloned, or taken from a folder that has
them under these names. Nothing of them is copied into this repository. Needs java and javac 17, mvn and git.

Two checks of constraints in CEL are left out, for which more jars would be needed, and two tools that measure speed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
COMMITS: Final = {
    "schema-registry": "794611bd86d1ce0422581269e2b13a2ab010c7fb",
    "rest-utils": "5269b872ddb3540f2e2ddc080b5cab0c83393031",
    "common": "d0e7fe8ebb331ecb0f7acb0231eaf2663dfe832b",
}
MODULES: Final = (
    *("avro-serializer", "avro-types", "client", "core", "json-schema-provider", "json-schema-serializer"),
    *("json-serializer", "logical-types", "protobuf-provider", "protobuf-serializer", "protobuf-types"),
    *("schema-serializer", "schema-types"),
)
LEFT_OUT: Final = (
    *("ConstraintTypeProvider.java", "ConstraintCelChecker.java"),
    *("SchemaRegistryPerformance.java", "SchemaRegistryClientPerformance.java"),
)
CEL_CHECK: Final = re.compile(r"^\s*ConstraintCelChecker\.strictCheck.*$", re.MULTILINE)
GRAMMAR: Final = "io/confluent/kafka/schemaregistry/type/logical/generated"
TESTS: Final = "core/src/test/java/io/confluent/kafka"
TEST_FILES: Final = (
    *(f"{TESTS}/schemaregistry/rest/RestApi*Test.java", f"{TESTS}/schemaregistry/rest/json/RestApi*Test.java"),
    *(f"{TESTS}/schemaregistry/rest/protobuf/RestApi*Test.java", f"{TESTS}/schemaregistry/protobuf/rest/*Test.java"),
    *(f"{TESTS}/schemaregistry/utils/{name}.java" for name in ("TestUtils", "PropsTest", "ResourceLoader")),
    *(f"{TESTS}/schemaregistry/client/{name}SchemaRegistryClientTest.java" for name in ("Mock", "Cached")),
    *(f"{TESTS}/schemaregistry/storage/{name}.java" for name in ("StoreUtils", "StringMessageHandler")),
    f"{TESTS}/schemaregistry/storage/StringSerializer.java",
    f"{TESTS}/schemaregistry/avro/AvroCompatibilityTest.java",
    f"{TESTS}/serializers/protobuf/test/*.java",
    "protobuf-serializer/src/test/java/com/acme/glup/*.java",
    "protobuf-serializer/src/test/java/io/confluent/connect/protobuf/test/*.java",
    "protobuf-serializer/src/test/java/io/confluent/kafka/serializers/protobuf/KafkaProtobufSerializerTest.java",
    "protobuf-serializer/src/test/java/io/confluent/kafka/serializers/protobuf/test/*.java",
)
NOT_TESTS: Final = ("RestApiSsl", "RestApiMetadataEncoder")
RESOURCES: Final = ("client", "core", "json-schema-provider", "schema-serializer", "avro-serializer")


def built(sources: Path | None, work: Path) -> str:
    """The class path of the registry, of its tests, and of what both need; compiled where it was not yet."""
    work.mkdir(parents=True, exist_ok=True)
    folder, done, stamp = work / "sources", work / "done", _stamp()
    if not done.exists() or done.read_text() != stamp:
        for name, commit in COMMITS.items():
            _fetch(name, commit, sources, folder / name)
        jars = _jars(work)
        _compile_main(folder, work, jars)
        _compile_tests(folder, work, jars)
        done.write_text(stamp)
    return os.pathsep.join((str(work / "tests"), str(work / "classes"), (work / "jars").read_text().strip()))


def _stamp() -> str:
    """What the compiled tests are made of, beside the sources: another one asks for a build."""
    made = sha256()
    for each in sorted([HERE / "build.py", HERE / "pom.xml", *(HERE / "harness").rglob("*.java")]):
        made.update(each.read_bytes())
    return made.hexdigest()


def _run(*words: str | Path, folder: Path | None = None) -> None:
    subprocess.run([str(word) for word in words], cwd=folder, check=True)


def _fetch(name: str, commit: str, sources: Path | None, target: Path) -> None:
    if target.exists():
        return
    if sources is not None:
        shutil.copytree(sources / name, target, symlinks=True)
        return
    _run("git", "init", "-q", target)
    _run("git", "fetch", "-q", "--depth", "1", f"https://github.com/confluentinc/{name}", commit, folder=target)
    _run("git", "checkout", "-q", "FETCH_HEAD", folder=target)


def _jars(work: Path) -> str:
    """The class path of the jars of pom.xml."""
    into = work / "jars"
    _run("mvn", "-q", "-f", HERE / "pom.xml", "dependency:build-classpath", f"-Dmdep.outputFile={into}")
    return into.read_text().strip()


def _compile(files: list[Path], into: Path, path: str) -> None:
    into.mkdir(exist_ok=True)
    listed = into.with_suffix(".files")
    listed.write_text("".join(f"{each}\n" for each in files))
    _run("javac", "-J-Xmx1500m", "-proc:none", "-nowarn", "-cp", path, "-d", into, f"@{listed}")


def _compile_main(folder: Path, work: Path, jars: str) -> None:
    registry, made, into = folder / "schema-registry", work / "generated", work / "classes"
    grammar = registry / f"logical-types/src/main/antlr4/{GRAMMAR}/LogicalTypes.g4"
    package = GRAMMAR.replace("/", ".")
    antlr = ("org.antlr.v4.Tool", "-visitor", "-package", package, "-o", made / GRAMMAR, "-Xexact-output-dir")
    _run("java", "-cp", jars, *antlr, grammar)
    places = [registry / f"{module}/src/main/java" for module in MODULES]
    places += [folder / "rest-utils/core/src/main/java", folder / "common/utils/src/main/java", made]
    files = [each for place in places for each in sorted(place.rglob("*.java")) if each.name not in LEFT_OUT]
    for each in files:
        if each.name == "ConstraintToCelTranslator.java":
            each.write_text(CEL_CHECK.sub("", each.read_text()))
    _compile(files, into, jars)
    for place in (*(registry / f"{module}/src/main/resources" for module in RESOURCES), *_protos(registry, "main")):
        if place.exists():
            shutil.copytree(place, into, dirs_exist_ok=True)


def _protos(registry: Path, part: str) -> list[Path]:
    return [registry / f"{module}/src/{part}/proto" for module in ("protobuf-types", "core", "protobuf-serializer")]


def _compile_tests(folder: Path, work: Path, jars: str) -> None:
    registry, made, into = folder / "schema-registry", work / "avro", work / "tests"
    path = os.pathsep.join((str(work / "classes"), jars))
    schemas = [registry / f"core/src/test/avro/{name}.avsc" for name in ("subrecord", "record")]
    _run("java", "-cp", path, HERE / "harness" / "Records.java", made, *schemas)
    files = [each for glob in TEST_FILES for each in sorted(registry.glob(glob)) if not each.stem.startswith(NOT_TESTS)]
    files += [*sorted(made.rglob("*.java")), *sorted((HERE / "harness" / "io").rglob("*.java"))]
    _compile(files, into, path)
    for place in (registry / "core/src/test/resources", registry / "core/src/test/avro", *_protos(registry, "test")):
        if place.exists():
            shutil.copytree(place, into, dirs_exist_ok=True)
