"""Who judges pairs of schemas beside momus: Confluent's client for Java, its parsers from their sources, Karapace."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kit

if TYPE_CHECKING:
    from cases import Case

HERE = Path(__file__).resolve().parent
JAVA = HERE.parent / "ecosystem" / "registry_java"
MODULES = ("client", "avro-types", "schema-types", "json-schema-provider", "protobuf-types", "protobuf-provider")
VECTORS = ("json-schema-provider", "protobuf-provider")
BEFORE = re.compile(r"\{oldSchema(Version)?: ")  # what of the messages is of the version that it does not fit
PATH = re.compile(r"\(path '[^']*'\)")
# An exception that compiled code throws often loses its text, of which OF_PARSERS knows its place.
WHOLE_EXCEPTIONS = "-XX:-OmitStackTraceInFastThrow"
Difference = tuple["Case", str]


def answered(command: Sequence[object], lines: list[str], **words: Any) -> list[str]:
    """A program's lines to these lines."""
    told = [str(word) for word in command]
    done = subprocess.run(told, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False, **words)
    assert done.returncode == 0, done.stderr[-2000:]
    found = done.stdout.splitlines()
    assert len(found) == len(lines), (len(found), len(lines), done.stderr[-2000:])
    return found


def of_client(cases: list[Case]) -> Iterator[Difference]:
    """What of Avro differs from Confluent's client 7.5.3, word for word."""
    lines = [f"{_encoded(each.pair.old)} {_encoded(each.pair.new)} {each.level}" for each in cases]
    path = kit.compiled(JAVA, "Resolver.java").split(":")[1]
    yield from _compared(cases, answered(["java", "-cp", path, HERE / "Referee.java"], lines), "Confluent")


def of_parsers(cases: list[Case], folder: Path) -> Iterator[Difference]:
    """What differs from Confluent's parsers, compiled of the checkout in a folder."""
    lines = [
        f"{each.pair.schema_type} {_encoded(each.pair.old)} {_encoded(each.pair.new)} {each.level}" for each in cases
    ]
    java = ("java", WHOLE_EXCEPTIONS, "-cp", parsers(folder), "Providers")
    yield from _compared(cases, answered(java, lines), "Confluent")


def parsers(folder: Path) -> str:
    """The class path of Confluent's parsers; compiled once for a checkout."""
    here = HERE / "confluent"
    libraries = kit.jars(here)
    sources = [folder / module / "src" / "main" / "java" for module in MODULES]
    files = sorted(path for source in sources for path in source.rglob("*.java"))
    content = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    made = kit.edition(here, "pom.xml", "Providers.java") / content
    if not (made / "complete").exists():
        path = ":".join(str(source) for source in sources)
        words = ("-nowarn", "-proc:none", "-implicit:class", "-d", made, "-sourcepath", path, "-cp", f"{libraries}/*")
        kit.fetch(("javac", *words, here / "Providers.java"))
        (made / "complete").touch()
    resources = ":".join(str(folder / module / "src" / "main" / "resources") for module in MODULES)
    return f"{made}:{resources}:{libraries}/*"


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _compared(cases: list[Case], lines: list[str], whom: str) -> Iterator[Difference]:
    for case, line in zip(cases, lines, strict=True):
        told = [base64.b64decode(word[1:]).decode() for word in line.split()]
        if told[0] == "fault":
            if case.found is not None:
                yield case, f"{whom} refuses it: {told[1]}"
        elif case.found is None:
            yield case, f"{whom} takes it: {case.fault}"
        else:
            for name, ours, his in (("canonical", case.found.text, told[0]), ("normalized", case.normalized, told[1])):
                if ours != his:
                    yield case, f"{name} form\n  momus     {ours}\n  {whom} {his}"
            mine, theirs = (_own(rows) for rows in (case.found.messages, told[2:]))
            if mine != theirs:
                what = "messages"
                if sorted(mine) == sorted(theirs):
                    what = "order of messages"
                elif [PATH.sub("", each) for each in mine] == [PATH.sub("", each) for each in theirs]:
                    what = "paths in messages"
                yield case, f"{what}\n  momus     {mine}\n  {whom} {theirs}"


def _own(messages: list[str]) -> list[str]:
    return [each for each in messages if not BEFORE.match(each)]


def of_karapace(cases: list[Case], folder: Path, python: str) -> Iterator[Difference]:
    """What differs from Karapace's verdict."""
    lines = [
        json.dumps({"type": each.pair.schema_type, "old": each.pair.old, "new": each.pair.new, "level": each.level})
        for each in cases
    ]
    paths = {**os.environ, "PYTHONPATH": str(folder / "src")}
    rows = answered([python, HERE / "karapace_judge.py"], lines, env=paths, cwd=folder)
    for case, line in zip(cases, rows, strict=True):
        told = json.loads(line)
        if "fault" in told:
            if case.found is not None:
                yield case, f"Karapace refuses it: {told['fault']}"
        elif case.found is None:
            yield case, f"Karapace takes it: {case.fault}"
        elif told["fits"] == bool(case.found.messages):
            kinds = sorted({each.kind for each in case.found.differences}) or case.found.messages[:1]
            yield case, f"Karapace: {'fits' if told['fits'] else told['why']}; momus: {kinds}"


def vectors(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The pairs by which Confluent tests its own rules, in a checkout: file, type, and what it says of each."""
    for module in VECTORS:
        for path in sorted((folder / module / "src" / "test" / "resources").glob("diff-*.json")):
            text = re.sub(r",(\s*[}\]])", r"\1", path.read_text())  # commas that only Java's parser takes
            for row in json.loads(text):
                yield path.name, "JSON" if module == VECTORS[0] else "PROTOBUF", row
