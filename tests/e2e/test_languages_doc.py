"""The six calls of docs/languages.md, each as it stands there: known to /openapi.json, and accepted in their order."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from described import fits

from momus.control import Control

PAGE = Path(__file__).parents[2] / "docs" / "languages.md"


@pytest.fixture(scope="module")
def control() -> Iterator[Control]:
    """The endpoint of a process that was started as the page says."""
    command = [sys.executable, "-m", "momus", "kit"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        assert lines[0].startswith("momus ready ")
        yield Control(lines[1].removeprefix("momus control ").strip())
        process.stdin.close()
        assert process.wait(60) == 0


def calls() -> list[tuple[str, str, Any]]:
    """Method, path with its query, and body of each curl of the page."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## From any other language")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    found = []
    for line in block.splitlines():
        if line.startswith("curl "):
            words = shlex.split(line)[1:]
            (url,) = [word for word in words if word.startswith("$CONTROL/")]
            body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
            method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
            found.append((method, url.removeprefix("$CONTROL"), body))
    return found


def test_page_has_six_calls():
    assert len(calls()) == 6


def test_each_call_of_the_page_is_described_and_accepted(control):
    described: Any = control.ask("GET", "/openapi.json")
    by_pattern = {re.compile(re.sub(r"{\w+}", "[^/]+", path)): methods for path, methods in described["paths"].items()}
    for method, target, body in calls():
        path = target.partition("?")[0]
        if path.endswith("/wait-for-offsets"):
            _commit(control, path)
        (operation,) = [each[method.lower()] for pattern, each in by_pattern.items() if pattern.fullmatch(path)]
        if body is not None:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            assert fits(body, schema, described), path
        answer: Any = control.ask(method, target, body)
        assert fits(answer, operation["responses"]["200"]["content"]["application/json"]["schema"], described), path
        if path.endswith("/wait-for-offsets"):
            assert answer["met"]
        if path.endswith("/verify"):
            assert answer == {"unmet": []}


def _commit(control: Control, path: str) -> None:
    """What the program under test does in between; its first try meets the fault."""
    cluster: Any = control.ask("GET", path.partition("/groups/")[0])
    consumer = Consumer({"bootstrap.servers": cluster["bootstrap_servers"], "group.id": "billing"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()


def test_options_of_serve_are_taken_and_wrong_ones_refused():
    command = [sys.executable, "-m", "momus", "kit", "--brokers", "many"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "'many' is not a valid integer" in process.stderr.read()
        assert process.wait(60) == 2
