"""A kept run that `momus open` has opened, on the page: where it is, and a button that plays the next request."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from clientwork import until

SAMPLE = Path(__file__).parents[1] / "samples" / "0.1.0" / "run.momus"


@pytest.fixture
def link():
    """The page of the sample, after its fifth request."""
    command = [sys.executable, "-m", "momus", "open", str(SAMPLE), "--until", "5", "--ui"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield [process.stdout.readline() for _ in range(4)][2].removeprefix("momus ui ").strip()
        process.terminate()


def test_button_plays_the_next_request_of_a_run(page, link):
    page.page.goto(link)
    where = page.page.locator("[data-is=step]")
    until(lambda: where.inner_text().startswith("request 5 of 37: "), "the run is at request 5")
    page.page.locator("[data-do=step]").click()
    until(lambda: where.inner_text().startswith("request 6 of 37: Metadata"), "the run is at request 6")
    until(lambda: any(row["API"].startswith("Metadata") for row in page.rows("entries")), "the journal has it")
    page.leave()
