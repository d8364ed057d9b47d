"""docs/clients.md is what its results come to, and the documents' leading examples use what every client survives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from client_table.cells import CLIENTS, Cell, cells
from client_table.page import PAGE, is_survived, page, survived
from client_table.results import FILE

REPOSITORY = Path(__file__).parents[2]
CONTENT = json.loads(FILE.read_text(encoding="utf-8"))
PYTHON = re.compile(r'[iI]nject_?[eE]rror\(\s*"(\w+)",\s*"(\w+)"')
SHELL = re.compile(r"inject_error api=(\w+) error=(\w+)")
JSON = re.compile(r'\\?"inject_error\\?", \\?"api\\?": \\?"(\w+)\\?", \\?"error\\?": \\?"(\w+)\\?"')
TEXTS = sorted(
    [
        REPOSITORY / "README.md",
        *(REPOSITORY / "docs").glob("*.md"),
        *(REPOSITORY / "examples").rglob("*.md"),
        *(REPOSITORY / "clients").glob("*/README.md"),
    ]
)


def examples() -> list[tuple[str, str, str]]:
    """Page, API and error of each example."""
    found = []
    for text in TEXTS:
        words = text.read_text(encoding="utf-8")
        for pattern in (PYTHON, SHELL, JSON):
            found += [(str(text.relative_to(REPOSITORY)), *match.groups()) for match in pattern.finditer(words)]
    return found


def test_page_is_what_the_results_come_to():
    assert PAGE.read_text(encoding="utf-8") == page(CONTENT), "run make client-table ARGS=--page"


def test_what_all_survive_is_kept_beside_the_results():
    assert CONTENT["survived"] == survived(CONTENT)


def test_each_cell_was_run_three_times_with_each_client():
    assert [cell.key for cell in cells() if len(CONTENT["cells"].get(cell.key, ())) != 3] == []
    assert set(CONTENT["clients"]) == set(CLIENTS)


def test_examples_are_found():
    assert {page for page, _, _ in examples()} >= {"README.md", "docs/faults.md", "clients/go/README.md"}


@pytest.mark.parametrize(("page", "api", "error"), examples())
def test_example_names_what_every_client_survives(page, api, error):
    assert error in CONTENT["survived"][api], f"{page}: see docs/clients.md"


def test_run_that_hung_lost_or_doubled_is_not_survived():
    good = {"did": "well", "s": 0.1}
    assert is_survived([good, good])
    assert not is_survived([])
    for bad in (
        {"did": "hangs"},
        {"did": "unwell"},
        {"did": "unmet"},
        {"did": "well", "lost": 1},
        {"did": "well", "twice": 1},
    ):
        assert not is_survived([good, bad]), bad


def test_survived_needs_each_client():
    runs = {cell.key: [{"did": "well", "s": 0.1}] for cell in cells()}
    assert "NOT_COORDINATOR" in survived({"cells": runs})["OffsetCommit"]
    story = {"commit": {"runs": [{"s": 45.1, "error": "UNKNOWN_MEMBER_ID"}]}}
    assert "NOT_COORDINATOR" not in survived({"cells": runs, "known": story})["OffsetCommit"]
    runs[Cell("sarama", "OffsetCommit", "NOT_COORDINATOR").key][0]["did"] = "hangs"
    assert "NOT_COORDINATOR" not in survived({"cells": runs})["OffsetCommit"]
