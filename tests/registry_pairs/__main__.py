"""`make registry-pairs`: random pairs of schemas judged by momus, by Karapace, and for Avro by Confluent's own client.

    ARGS="--pairs 2000 --karapace DIR --python DIR/bin/python"

A pair is judged at each of the seven levels. Confluent's client (7.5.3, within a jar of Flink on Maven Central) must
agree on Avro word for word: canonical form, normalized form and messages. Karapace (its sources in DIR; an environment
with what they import) must agree whether a schema fits, but where EXPLAINED says why it does not. What differs without
a reason is printed, and the exit code is 1. Without --karapace the pairs of Avro alone are judged. Where Karapace's
module in Go (protopace) cannot be built, a stand-in whose format_proto returns what it is given does: it only formats.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE), str(HERE.parent / "ecosystem")]

import kit  # noqa: E402 - found by the line above
from explained import EXPLAINED  # noqa: E402 - found by the line above
from pairs import FORMATS, LEVELS, Pair, pair  # noqa: E402 - found by the line above

from broker.registry.formats import checker  # noqa: E402 - found by the line above
from broker.registry.jobs import Checked, Job, SchemaFaultError, Source  # noqa: E402 - found by the line above
from broker.shell.registry.protoc import compiled  # noqa: E402 - found by the line above

JAVA = HERE.parent / "ecosystem" / "registry_java"
SHOWN = 10


class Case(NamedTuple):
    """A pair at a level, and what momus says of it."""

    number: int
    pair: Pair
    level: str
    found: Checked | None
    normalized: str
    fault: str


def judged(numbers: range) -> Iterator[Case]:
    """All formats, all levels."""
    for schema_type in FORMATS:
        for number in numbers:
            made = pair(schema_type, number)
            old, new = Source(schema_type, made.old, (), 1), Source(schema_type, made.new)
            for level in LEVELS:
                try:
                    found = checker.check(Job(new, previous=(old,), level=level), compiled)
                    normalized = ""
                    if schema_type == "AVRO":
                        normalized = checker.check(Job(new, normalize=True), compiled).text
                    yield Case(number, made, level, found, normalized, "")
                except SchemaFaultError as fault:
                    yield Case(number, made, level, None, "", str(fault))


def answered(command: list[str], lines: list[str], **words: Any) -> list[str]:
    """A program's lines to these lines."""
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False, **words)
    assert done.returncode == 0, done.stderr[-2000:]
    found = done.stdout.splitlines()
    assert len(found) == len(lines), (len(found), len(lines), done.stderr[-2000:])
    return found


def of_confluent(cases: list[Case]) -> Iterator[tuple[Case, str]]:
    """What of Avro differs from Confluent's client: a case, and how."""

    def encode(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    lines = [f"{encode(each.pair.old)} {encode(each.pair.new)} {each.level}" for each in cases]
    path = kit.compiled(JAVA, "Resolver.java").split(":")[1]
    command = ["java", "-cp", path, str(HERE / "Referee.java")]
    for case, line in zip(cases, answered(command, lines), strict=True):
        told = [base64.b64decode(word[1:]).decode() for word in line.split()]
        mine = ["fault"]
        if case.found is not None:
            messages = [each for each in case.found.messages if not each.startswith("{oldSchemaVersion:")]
            mine = [case.found.text, case.normalized, *messages]
        if told[0] == "fault":
            if mine != ["fault"]:
                yield case, f"Confluent refuses it: {told[1]}"
        elif mine == ["fault"]:
            yield case, f"Confluent takes it: {case.fault}"
        else:
            theirs = [each for each in told if not each.startswith("{oldSchemaVersion:")]
            for name, ours, his in (("canonical", mine[0], theirs[0]), ("normalized", mine[1], theirs[1])):
                if ours != his:
                    yield case, f"{name} form\n  momus     {ours}\n  Confluent {his}"
            if mine[2:] != theirs[2:]:
                yield case, f"messages\n  momus     {mine[2:]}\n  Confluent {theirs[2:]}"


def of_karapace(cases: list[Case], folder: Path, python: str) -> Iterator[tuple[Case, str]]:
    """What differs from Karapace's verdict: a case, and how."""
    lines = [
        json.dumps({"type": each.pair.schema_type, "old": each.pair.old, "new": each.pair.new, "level": each.level})
        for each in cases
    ]
    paths = {**os.environ, "PYTHONPATH": str(folder / "src")}
    rows = answered([python, str(HERE / "karapace_judge.py")], lines, env=paths, cwd=folder)
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


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2000, help="of each format")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--karapace", type=Path)
    parser.add_argument("--python", default=sys.executable, help="one that can import Karapace")
    options = parser.parse_args()
    cases = list(judged(range(options.first, options.first + options.pairs)))
    avro = [each for each in cases if each.pair.schema_type == "AVRO"]
    unexplained: list[tuple[str, Case, str]] = [("Confluent", *each) for each in of_confluent(avro)]
    reasons: Counter[str] = Counter()
    if options.karapace:
        for case, how in of_karapace(cases, options.karapace, options.python):
            why = next((name for name, holds in EXPLAINED.items() if holds(case, how)), "")
            if why:
                reasons[f"{case.pair.schema_type}: {why}"] += 1
            else:
                unexplained.append(("Karapace", case, how))
    say(f"{options.pairs} pairs x {len(FORMATS)} formats x {len(LEVELS)} levels: {len(cases)} judged by momus")
    say(f"{len(avro)} of them by Confluent's client, {len(cases) if options.karapace else 0} by Karapace")
    for reason, count in reasons.most_common():
        say(f"  {count} differ from Karapace, explained: {reason}")
    say(f"{len(unexplained)} differ without a reason")
    for whom, case, how in unexplained[:SHOWN]:
        say(f"\n{whom}, {case.pair.schema_type} {case.number} {case.level}: {how}\n{case.pair.old}\n{case.pair.new}")
    return bool(unexplained)


if __name__ == "__main__":
    sys.exit(main())
