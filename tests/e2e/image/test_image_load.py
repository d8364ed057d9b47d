"""A container that is filled before it serves: files in /etc/momus/load, and the variable of wurstmeister's image."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from docker_engine import run
from image_kit import Container

Start = Callable[..., Container]
ORDERS = """\
topics:
  - name: orders
    partitions: 2
    records_from: rows.jsonl
"""
PRICES = '{"topics": [{"name": "prices"}], "groups": [{"name": "g", "offsets": [{"topic": "orders", "offset": 1}]}]}'


def folder_of(place: Path, **texts: str) -> str:
    """A folder that a container may read."""
    place.mkdir()
    for name, text in texts.items():
        (place / name.replace("_", ".")).write_text(text)
        (place / name.replace("_", ".")).chmod(0o644)
    for each in (place, *place.parents[:3]):
        each.chmod(each.stat().st_mode | 0o055)
    return f"{place}:/etc/momus/load:ro"


def test_load_of_files_in_etc_comes_before_health_and_is_not_done_again(start: Start, tmp_path: Path):
    files = {"1orders_yaml": ORDERS, "2prices_json": PRICES, "rows_jsonl": '{"value": "a"}\n{"value": "b"}\n'}
    container = start("-v", folder_of(tmp_path / "load", **files), "-e", "MOMUS_LOG_LEVEL=info")
    assert "loaded topics: 2, records: 2, groups: 1" in container.wait_for("momus ready")
    assert container.exec("momus", "consume", "-t", "orders", "-e").split() == ["a", "b"]
    (described,) = json.loads(container.exec("momus", "group", "describe", "g", "--json"))
    assert [row["committed"] for row in described["offsets"]] == [1]
    run("docker", "restart", container.id)
    container.wait_for("loaded in this directory already, and not loaded again")
    assert container.exec("momus", "consume", "-t", "orders", "-e").split() == ["a", "b"]


def test_load_that_is_wrong_ends_the_container_with_file_line_and_field(start: Start, tmp_path: Path):
    container = start("-v", folder_of(tmp_path / "load", a_yaml="topics:\n- nam: orders\n"))
    code, log = container.ended()
    assert code == 2
    assert "/etc/momus/load/a.yaml:2: topics[0].nam: no such field. Did you mean name?" in log


def test_load_of_an_empty_folder_is_nothing(start: Start, tmp_path: Path):
    assert "momus ready" in start("-v", folder_of(tmp_path / "load")).wait_for("momus ready")


def test_load_by_the_variable_of_wurstmeister(start: Start):
    container = start("-e", "KAFKA_CREATE_TOPICS=orders:3:1,prices:1:3:compact")
    log = container.wait_for("momus ready")
    assert "topic prices gets replicas: 1, not 3: there are no more brokers" in log
    topics = {row["name"]: row["partitions"] for row in json.loads(container.exec("momus", "topic", "list", "--json"))}
    assert {name: topics[name] for name in ("orders", "prices")} == {"orders": 3, "prices": 1}
