"""`momus explore -- PROGRAM`: a program is killed at its requests, started again, and its work is checked."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import os, pathlib, sys
from confluent_kafka import Consumer, TopicPartition

servers, folder, is_bad = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3] == "bad"
assert servers == os.environ["KAFKA_BOOTSTRAP_SERVERS"]
done = folder / servers.rpartition(":")[2]
consumer = Consumer({
    "bootstrap.servers": servers, "group.id": "billing", "auto.offset.reset": "earliest", "enable.auto.commit": False,
    "heartbeat.interval.ms": 100, "fetch.wait.max.ms": 50,
})
consumer.subscribe(["orders"])
position = 0
while position < 2:  # both are committed
    message = consumer.poll(0.1)
    if message is not None and message.error() is None:
        if is_bad:
            consumer.commit(message, asynchronous=False)
        with done.open("a") as file:
            print(message.offset(), file=file)
        if not is_bad:
            consumer.commit(message, asynchronous=False)
    position = consumer.committed([TopicPartition("orders", 0)], 30)[0].offset
consumer.close()
"""
CHECK = """
import pathlib, sys
found = set((pathlib.Path(sys.argv[2]) / sys.argv[1].rpartition(":")[2]).read_text().split())
sys.exit(0 if found == {"0", "1"} else f"worked on {sorted(found)}")
"""
LOAD = {"topics": [{"name": "orders", "partitions": 1, "records": [{"value": "a"}, {"value": "b"}]}]}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "check.py").write_text(CHECK)
    (tmp_path / "load.json").write_text(json.dumps(LOAD))
    (tmp_path / "done").mkdir()
    return tmp_path


def explore(project, *words, kind="good"):
    """Run `momus explore`. Returns its exit code, its output, and what it has found."""
    command = [sys.executable, "-m", "momus", "explore", "--report", "found.json", *words]
    if "--" not in words:
        check = f"{sys.executable} check.py {{servers}} done"
        command += ["--load", "load.json", "--check", check]
        command += ["--", sys.executable, "program.py", "{servers}", "done", kind]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    report = project / "found.json"
    found = json.loads(report.read_text())[0] if report.exists() else None
    return ran.returncode, ran.stdout + ran.stderr, found


def test_work_after_the_commit_is_lost_by_a_kill_between_them(project):
    code, output, found = explore(project, "--what", "program", "--budget", "8", kind="bad")
    assert code == 1, output
    wrong = {run["schedule"] for run in found["runs"] if run["verdict"] == "failed"}
    assert wrong >= {f"OffsetCommit[group=billing]#{number} kill_program after" for number in (1, 2)}
    assert "worked on " in output


def test_work_before_the_commit_is_never_lost(project):
    code, output, found = explore(project, "--what", "program,group", "--budget", "12", "--restart")
    assert code == 0, output
    assert "passed" in {run["verdict"] for run in found["runs"]}


def test_one_schedule_happens_once_more(project):
    text = "OffsetCommit[group=billing]#1 kill_program after"
    code, output, _ = explore(project, "--schedule", text, kind="bad")
    assert (code, f"failed: {text}" in output, "worked on ['1']" in output) == (1, True, True), output
    assert explore(project, "--schedule", text, kind="good")[0] == 0


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["--", sys.executable, "-c", "exit(3)"], 1, "without anything that happens it ended with 3"),
        (["--", sys.executable, "-c", "pass"], 1, "it asked its cluster nothing"),
        (["--", "/no/such/program"], 1, "/no/such/program cannot be started"),
        (["--budget", "soon", "--", "true"], 2, "takes a time"),
        (["--schedule", "Commit", "--", "true"], 2, "no step of a schedule"),
        (["--set", "x", "--", "true"], 2, "--set takes KEY=VALUE"),
    ],
)
def test_what_cannot_be_explored_is_refused_with_a_sentence(project, words, code, why):
    found = explore(project, *words)
    assert (found[0], why in found[1]) == (code, True), found[1]
