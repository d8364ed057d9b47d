"""What Testcontainers' modules for Kafka say: the strings in their sources, fetched and compared with those seen last.

`make test-module-texts` fetches the pinned releases with mvn, pip and go, each as it is configured here, and compares
their strings with module_texts.json, which test_module_texts.py holds against the scripts of test_drop_in.py. Start
scripts, commands, settings and awaited log lines are such strings, so a release that changes one is noticed:

    make test-module-texts ARGS="--java 1.22.0"            # what does another release say?
    make test-module-texts ARGS="--java 1.22.0 --write"    # it has been looked at, and is the pinned one from now on
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

SEEN = Path(__file__).with_suffix(".json")
ARTIFACT, MODULE = "org.testcontainers:kafka", "github.com/testcontainers/testcontainers-go/modules/kafka"
FILES = {
    "java": (
        "org/testcontainers/kafka/KafkaHelper.java",
        "org/testcontainers/kafka/KafkaContainer.java",
        "org/testcontainers/kafka/ConfluentKafkaContainer.java",
        "org/testcontainers/containers/KafkaContainer.java",
    ),
    "python": ("testcontainers/community/kafka/__init__.py",),
    "go": ("kafka.go",),
}
_TOKEN = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`|/\*.*?\*/|//[^\n]*', re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t"}


def strings_of_text(source: str) -> list[str]:
    """The string literals of Java or Go, in order; those of comments and imports are left out."""
    source = re.sub(r"^import (\(.*?^\)|.*?$)", "", source, flags=re.DOTALL | re.MULTILINE)
    found = []
    for each in _TOKEN.finditer(source):
        if each[1] is not None:
            found.append(re.sub(r"\\(.)", lambda escape: _ESCAPED.get(escape[1], escape[1]), each[1], flags=re.DOTALL))
        elif each[2] is not None:
            found.append(each[2])
    return found


def strings_of_python(source: str) -> list[str]:
    """The string literals of Python and the fixed parts of f-strings, in order; docstrings are left out."""
    tree = ast.parse(source)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    nodes = [node for node in nodes if id(node) not in bare]
    return [node.value for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))]


def fetch(language: str, version: str, folder: Path) -> dict[str, list[str]]:
    """The strings of each file of a release. Errors: CalledProcessError: the tool could not fetch it; KeyError,
    OSError: a file is not in it any more."""
    found = {}
    if language == "go":
        told = _run("go", "mod", "download", "-json", f"{MODULE}@{version}", at=folder)
        place = Path(json.loads(told)["Dir"])
        sources = {name: (place / name).read_text() for name in FILES[language]}
    else:
        if language == "java":
            artifact = f"-Dartifact={ARTIFACT}:{version}:jar:sources"
            _run("mvn", "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={folder}", at=folder)
            (archive,) = folder.glob("kafka-*.jar")
        else:
            wanted = ("download", "-q", "--no-deps", "--disable-pip-version-check", "-d", ".")
            _run(sys.executable, "-m", "pip", *wanted, f"testcontainers=={version}", at=folder)
            (archive,) = folder.glob("testcontainers-*.whl")
        with zipfile.ZipFile(archive) as files:
            sources = {name: files.read(name).decode() for name in FILES[language]}
    for name, source in sources.items():
        found[name] = strings_of_python(source) if language == "python" else strings_of_text(source)
    return found


def _run(*command: str, at: Path) -> str:
    return subprocess.run(command, cwd=at, check=True, stdout=subprocess.PIPE, text=True).stdout


def differences(seen: dict[str, Any], versions: dict[str, str]) -> tuple[list[str], dict[str, Any]]:
    """Sentences about what these releases say otherwise, and what they say."""
    told, now = [], {}
    for language, version in versions.items():
        with tempfile.TemporaryDirectory() as folder:
            texts = fetch(language, version, Path(folder))
        now[language] = {"version": version, "texts": texts}
        for name, strings in texts.items():
            before = seen[language]["texts"].get(name, []) if language in seen else []
            for word, some in (
                ("says", [each for each in strings if each not in before]),
                ("does not say", [each for each in before if each not in strings]),
            ):
                told += [f"{language} {version}, {name} {word} {each!r}" for each in some]
            if strings != before and not any(name in each for each in told):
                told.append(f"{language} {version}, {name} says the same in another order")
    return told, now


def main() -> int:
    """Compare, and answer 1 if a release says something else."""
    seen = json.loads(SEEN.read_text()) if SEEN.exists() else {}
    parser = argparse.ArgumentParser(description=__doc__)
    for language in FILES:
        parser.add_argument(f"--{language}", default=seen.get(language, {}).get("version"), help="the release to read")
    parser.add_argument("--write", action="store_true", help=f"keep what these releases say in {SEEN.name}")
    words = parser.parse_args()
    told, now = differences(seen, {language: getattr(words, language) for language in FILES})
    sys.stdout.write("".join(f"{each}\n" for each in told) or "the modules say what they said\n")
    if words.write:
        SEEN.write_text(json.dumps(now, indent=1) + "\n")
        return 0
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
