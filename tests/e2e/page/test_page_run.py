"""A kept run that `momus open` has opened, on the page: where it is, a button that plays the next request, its past."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from clientwork import until

from momus.control import Control

SAMPLE = Path(__file__).parents[1] / "samples" / "0.1.0" / "run.momus"


@pytest.fixture
def link(request):
    """The page of the sample, after its fifth request, or the one that a test names."""
    until_request = str(getattr(request, "param", 5))
    command = [sys.executable, "-m", "momus", "open", str(SAMPLE), "--until", until_request, "--ui"]
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


@pytest.mark.parametrize("link", [36], indirect=True)
def test_run_has_its_timeline_and_its_groups_as_a_live_cluster_has(page, link):
    tab, control = page.page, Control(link.partition("//")[2].partition("/")[0])
    control.prefix = "/_admin/clusters/replay"
    tab.goto(link.replace("/journal", "/timeline"))
    told = control.ask("GET", f"{control.prefix}/timeline?minutes=120")
    said = tab.locator("main p[role=status]")
    requests = sum(sum(each["apis"].values()) for each in told["seconds"])
    until(lambda: said.inner_text().startswith(f"{requests} requests"), f"{requests} requests are on the timeline")
    assert requests >= 36
    assert len(page.rows("events")) == len(told["events"]) > 0
    (group,) = [each["group"] for each in control.ask("GET", f"{control.prefix}/groups")["groups"]]
    tab.goto(link.replace("/journal", f"/groups/{group}"))
    owners = control.ask("GET", f"{control.prefix}/groups/{group}/owners")["owners"]
    assert [(row["Partition"], row["Epoch"]) for row in page.rows("owners")] == [
        (each["partition"], str(each["epoch"])) for each in owners
    ]
    history = control.ask("GET", f"{control.prefix}/groups/{group}/history")["history"]
    assert [row["Offset"] for row in page.rows("history")] == [str(each["offset"]) for each in history] != []
    page.leave()
