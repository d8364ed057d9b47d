"""Who set offsets back or ahead: by members, tools and removals, in the logs of momus and of Apache Kafka."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_logs import Logs

from pipeline.errors import PipelineError
from pipeline.jobs import offsets, resets
from pipeline.jobs.registry import job_parser

CO = "__consumer_offsets-0"


def ask(job: Any, session: Any, capsys: pytest.CaptureFixture[str], directory: Path, *words: str) -> list[Any]:
    args = job_parser(job.__name__.rpartition(".")[2], job).parse_args(["--input", str(directory), *words])
    assert job.run(session, args) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """Log positions by what happens there; between them, progress that is none of it."""
    directory: Path = tmp_path_factory.mktemp("resets")
    logs, at = Logs(directory), {}
    said: dict[str, Any] = {"member": "m", "generation": 1, "client": "app"}
    logs.commit(CO, "billing", {0: 10, 1: 10}, **said)
    logs.commit(CO, "billing", {0: 50}, **said)
    at["member back"] = logs.commit(CO, "billing", {0: 40}, **said)
    at["tool ahead"] = logs.commit(CO, "billing", {0: 90}, client="kafka-consumer-groups")
    at["tool back"] = logs.commit(CO, "billing", {0: 0}, client="kafka-consumer-groups")
    logs.commit(CO, "billing", {0: 20}, **said)
    at["removed"] = logs.forget(CO, "billing", 1)
    logs.commit(CO, "billing", {1: 3}, **said)
    for offset in (1, 5, 9):  # a client without a group, which commits its own progress
        logs.commit(CO, "alone", {0: offset}, client="alone")
    # As Apache Kafka writes them: nobody is named, and a tool gives no leader epoch.
    logs.commit(CO, "kafka", {0: 7}, leader_epoch=3)
    logs.commit(CO, "kafka", {0: 9}, leader_epoch=3)
    at["kafka's tool"] = logs.commit(CO, "kafka", {0: 2})
    logs.commit(CO, "silent", {0: 7})
    at["nobody knows"] = logs.commit(CO, "silent", {0: 5})
    return directory, at


def test_every_reset_has_its_kind_its_maker_and_its_position(engine, capsys, made):
    directory, at = made
    rows = {row["log_offset"]: row for row in ask(resets, engine, capsys, directory)}
    names = {offset: what for what, offset in at.items()}
    kept = ("group", "partition", "kind", "from_offset", "to_offset", "again", "skipped", "by", "client_id")
    assert {names[offset]: tuple(row.get(name) for name in kept) for offset, row in rows.items()} == {
        "member back": ("billing", 0, "back", 50, 40, 10, None, "member", "app"),
        "tool ahead": ("billing", 0, "jump", 40, 90, None, 50, "tool", "kafka-consumer-groups"),
        "tool back": ("billing", 0, "back", 90, 0, 90, None, "tool", "kafka-consumer-groups"),
        "removed": ("billing", 1, "removed", 10, None, None, None, "unknown", None),
        "kafka's tool": ("kafka", 0, "back", 9, 2, 7, None, "tool", None),
        "nobody knows": ("silent", 0, "back", 7, 5, 2, None, "unknown", None),
    }
    assert {row["log"] for row in rows.values()} == {CO}


def test_resets_of_a_group_in_a_time(engine, capsys, made):
    directory, at = made
    rows = ask(resets, engine, capsys, directory, "--group", "bill*", "--topic", "t")
    assert {row["group"] for row in rows} == {"billing"}
    since = next(row["time"] for row in rows if row["log_offset"] == at["tool back"])
    later = ask(resets, engine, capsys, directory, "--since", since.replace("Z", "+00:00"), "--group", "billing")
    assert [row["log_offset"] for row in later] == [at["tool back"], at["removed"]]
    assert ask(resets, engine, capsys, directory, "--until", "2020-01-01T00:00:00") == []


def test_offsets_of_a_time_are_written_as_an_import_takes_them(engine, capsys, made, tmp_path):
    directory, at = made
    rows = {row["log_offset"]: row for row in ask(resets, engine, capsys, directory)}
    before = rows[at["tool ahead"]]["time"].replace("Z", "+00:00")
    path = tmp_path / "before.jsonl"
    args = job_parser("offsets", offsets).parse_args([
        "--input", str(directory), "--as-of", before, "--group", "billing", "--import-file", str(path),
    ])  # fmt: skip  # one argument, no indent of its own
    assert offsets.run(engine, args) == 0
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"group": "billing", "topic": "t", "partition": 0, "offset": 90, "leader_epoch": -1, "metadata": ""},
        {"group": "billing", "topic": "t", "partition": 1, "offset": 10, "leader_epoch": -1, "metadata": ""},
    ]
    with pytest.raises(PipelineError, match="File exists"):
        offsets.run(engine, args)


def test_offsets_of_a_group_are_the_starting_offsets_of_a_query(engine, capsys, made):
    directory, _ = made
    assert ask(offsets, engine, capsys, directory, "--group", "billing", "--starting-offsets") == [
        {"t": {"0": 20, "1": 3}}
    ]
    with pytest.raises(PipelineError, match="name it by --group"):
        ask(offsets, engine, capsys, directory, "--starting-offsets")
