"""Looks of the page: rows coloured by API and outcome, wide screens, empty views, what one without the token sees."""

from __future__ import annotations

import subprocess
import sys

import pytest
from clientwork import until
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from page_kit import VIEWS

from momus import Broker

WIDE = {"width": 1900, "height": 1000}
ONE_OF = ("topics/read", "groups/owned", "transactions/payments")
COLOURS = """([of, api]) => {
  const rows = [...document.querySelectorAll(`table[data-of="${of}"] tbody tr`)];
  const row = rows.find((each) => each.textContent.includes(api));
  return [getComputedStyle(row.cells[0]).boxShadow, getComputedStyle(row).backgroundColor];
}"""
TABLES = """() => [...document.querySelectorAll("main .scroll, .parts section")].filter((each) => each.offsetParent)
  .map((each) => each.getBoundingClientRect().right)"""
COLUMNS = """() => new Set([...document.querySelectorAll(".parts section")]
  .map((each) => Math.round(each.getBoundingClientRect().left))).size"""


@pytest.fixture(scope="module")
def broker():
    config = {"group.initial.rebalance.delay.ms": 0}
    with Broker(brokers=2, journal_mb=4, config=config, registry=True) as broker:
        broker.create_topic("read", partitions=3)
        owner = Consumer({**broker.client_config("confluent"), "group.id": "owned", "client.id": "owner"})
        owner.subscribe(["read"])
        until(lambda: owner.poll(0.1) is not None or owner.assignment(), "an assignment")
        owner.commit(offsets=[TopicPartition("read", 0, 0)], asynchronous=False)
        stranger = Consumer({**broker.client_config("confluent"), "group.id": "owned"})
        with pytest.raises(KafkaException):
            stranger.commit(offsets=[TopicPartition("read", 0, 7)], asynchronous=False)
        stranger.close()
        writer = Producer({**broker.client_config("confluent"), "transactional.id": "payments"})
        writer.init_transactions()
        writer.begin_transaction()
        writer.produce("read", "x")
        writer.commit_transaction()
        yield broker
        owner.close()


def test_rows_of_the_journal_are_coloured_by_api_and_outcome(broker, page):
    tab = page.open(broker, "journal?api=Produce")
    page.rows("entries")
    seen = [tab.evaluate(COLOURS, ["entries", "Produce"])]
    for filters, word in (("api=OffsetCommit&error=UNKNOWN_MEMBER_ID", "UNKNOWN"), ("api=OffsetCommit", " ok")):
        tab = page.open(broker, f"journal?{filters}")
        until(
            lambda word=word: any(word in row["Answer"] or row["Answer"] in word for row in page.rows("entries")), word
        )
        wanted = "UNKNOWN_MEMBER_ID" if word == "UNKNOWN" else "ok"
        seen.append(tab.evaluate(COLOURS, ["entries", wanted]))
    (written, plain), (refused, tinted), (committed, untinted) = seen
    assert "inset" in written
    assert written != committed == refused
    assert plain == untinted != tinted


def test_wide_screen_is_used_by_all_views(broker, page):
    page.page.set_viewport_size(WIDE)
    for view in (*VIEWS, *ONE_OF):
        tab = page.open(broker, view)
        if view not in ("security", "schemas"):
            tab.get_by_text("live", exact=True).wait_for()
        if view not in ("faults", "schemas", "security"):  # which have no table here
            until(lambda tab=tab: max(tab.evaluate(TABLES), default=0) > 1800, f"{view} is wide")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 1900
        if "/" in view and not view.startswith("transactions"):
            assert tab.evaluate(COLUMNS) == 2, view


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_has_a_finding_of_axe_on_a_wide_screen(broker, page, scheme):
    page.page.set_viewport_size(WIDE)
    page.page.emulate_media(color_scheme=scheme)
    broker.faults.delay_on("OffsetCommit", 1, group="slow")
    for view in (*VIEWS, *ONE_OF):
        page.open(broker, view)
        if view not in ("security", "schemas"):
            page.page.get_by_text("live", exact=True).wait_for()
        assert page.findings() == [], view
    broker.faults.clear()


def test_empty_view_teaches_what_would_be_there(page):
    wanted = {
        "overview": "so what was refused is not known",
        "timeline": "No journal is kept",
        "topics": "with the first message that it produces",
        "groups": "once a consumer has joined it",
        "journal": "It holds the last requests with their replies",
        "faults": "The form below sets one",
        "transactions": "has called initTransactions",
        "schemas": "Serve it, and this page shows its subjects",
        "security": "No user is known",
        "cluster": "A snapshot keeps all data as it is now",
    }
    assert set(wanted) == set(VIEWS)
    with Broker() as broker:
        for view, text in wanted.items():
            tab = page.open(broker, view)
            tab.locator("main").get_by_text(text).first.wait_for()
        tab = page.open(broker, "topics")
        tab.get_by_text("with the first message that it produces").wait_for()
        tab.locator("#filter").fill("absent")
        tab.get_by_text("No topic has this in its name.").wait_for()
        page.leave()


def test_views_have_no_buttons_and_no_forms_for_who_has_no_token(page):
    command = [sys.executable, "-m", "momus", "serve", "--listen", "127.0.0.1:0", "--flush", "memory", "--ui"]
    with subprocess.Popen([*command, "--control-token", "secret"], stdout=subprocess.PIPE, text=True) as process:
        try:
            link = (
                next(line for line in process.stdout if line.startswith("momus ui ")).removeprefix("momus ui ").strip()
            )
            for view in (*VIEWS, "topics/t", "groups/g"):
                tab = page.page
                tab.goto("about:blank")
                tab.goto(f"{link}#/default/{view}")
                tab.get_by_role("textbox", name="Token").wait_for()
                assert tab.locator("main h1").count() == 1, view
                assert tab.locator("main :is(button, input, select, textarea):visible").count() == 0, view
            page.leave()
        finally:
            process.terminate()
    page.console[:] = [each for each in page.console if "401" not in each]
