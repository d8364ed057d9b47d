"""The page can be read and aimed at: on a phone, on a live journal, and with long refusals in its tables."""

from __future__ import annotations

import pytest
from clientwork import until
from confluent_kafka import Consumer, KafkaException, TopicPartition
from page_kit import Load, producing

from momus import Broker
from protocol.messages.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)

PHONE = {"width": 375, "height": 700}
SPLIT_WORDS = """(of) => {
  const found = [];
  for (const cell of document.querySelectorAll(`table[data-of="${of}"] td`)) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) {
      for (const word of node.data.matchAll(/\\w+/g)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map((each) => Math.round(each.top)));
        if (word[0].length < 24 && lines.size > 1) found.push(word[0]);
      }
    }
  }
  return found;
}"""
HIDDEN_NUMBERS = """(of) => {
  const table = document.querySelector(`table[data-of="${of}"]`);
  const right = table.closest(".scroll").getBoundingClientRect().right + 1;
  return [...table.rows[0].cells].filter((cell) => cell.offsetWidth && cell.getBoundingClientRect().right > right)
    .map((cell) => cell.textContent);
}"""
HIGHEST = """(of) => Math.max(...[...document.querySelector(`table[data-of="${of}"]`).tBodies[0].rows]
  .map((row) => row.offsetHeight))"""


@pytest.fixture(scope="module")
def broker():
    config = {"group.initial.rebalance.delay.ms": 0}
    with Broker(config=config, journal_mb=8) as broker:
        broker.create_topic("read", partitions=12)
        owner = Consumer({**broker.client_config("confluent"), "group.id": "owned", "client.id": "owner"})
        owner.subscribe(["read"])
        until(lambda: owner.poll(0.1) is not None or owner.assignment(), "an assignment")
        settings = {"group.id": "owned", "client.id": "a-stranger-with-a-long-name"}
        stranger = Consumer({**broker.client_config("confluent"), **settings})
        with pytest.raises(KafkaException):
            stranger.commit(offsets=[TopicPartition("read", 0, 7)], asynchronous=False)
        stranger.close()
        yield broker
        owner.close()


def test_words_stay_whole_and_numbers_in_sight_on_a_phone(broker, page):
    broker.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", group="a-group-with-a-name", client_id="billing-1")
    page.page.set_viewport_size(PHONE)
    for view, table in (
        ("journal", "entries"),
        ("faults", "faults"),
        ("groups/owned", "history"),
        ("groups/owned", "owners"),
        ("topics", "topics"),
    ):
        tab = page.open(broker, view)
        page.rows(table)
        assert tab.evaluate(SPLIT_WORDS, table) == [], view
        assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], view
        assert tab.locator("h1").evaluate("title => title.offsetWidth") > PHONE["width"] * 0.9, view
    assert tab.evaluate(HIDDEN_NUMBERS, "topics") == []
    broker.faults.clear()


@pytest.mark.parametrize("width", [375, 1280, 1900])
def test_refusal_takes_a_line_of_the_journal_and_few_of_a_history(broker, page, width):
    page.page.set_viewport_size({"width": width, "height": 900})
    tab = page.open(broker, "journal?error=UNKNOWN_MEMBER_ID")
    (row,) = page.rows("entries")
    assert len(row["Why"]) > 40
    assert tab.evaluate(HIGHEST, "entries") <= 34
    tab = page.open(broker, "groups/owned")
    assert page.rows("history")[0]["Why"] == row["Why"]
    assert tab.evaluate(HIGHEST, "history") <= 160
    times = tab.locator("table[data-of=history] td:first-child")
    assert times.first.evaluate("cell => cell.firstChild.getClientRects().length") == 1


def test_each_field_of_a_fault_has_a_label_and_no_choice_is_blank(broker, page):
    tab = page.open(broker, "faults")
    kinds = broker.control.ask("GET", "/_admin/faults/kinds")
    for kind in kinds:
        tab.locator("main select").first.select_option(kind["fault"])
        fields = "list => list.map((each) => [each.labels[0]?.firstChild?.textContent ?? '', each.value])"
        given = tab.locator("main input, main select").evaluate_all(fields)
        assert [each for each in given if not each[0].strip()] == [], kind["fault"]
        chosen = tab.locator("main select").evaluate_all("list => list.map((each) => each.value)")
        assert "" not in chosen, kind["fault"]


def test_fifty_clicks_on_a_live_journal_open_the_fifty_rows_that_were_aimed_at(broker, page):
    broker.create_topic("busy")
    tab = page.open(broker, "journal")
    with Load(producing(broker, "busy", 1)):
        until(lambda: len(page.rows("entries")) > 20, "a journal that fills a screen")
        wrong = []
        for number in range(50):
            tab.mouse.move(400, 20)  # away from the list, which moves on
            seen = page.rows("entries")[0]
            until(lambda seen=seen: page.rows("entries")[0] != seen, "the journal goes on")
            box = tab.locator(".scroll").first.bounding_box()
            x, y = box["x"] + 60, box["y"] + 60 + 24 * (number % 12)
            tab.mouse.move(x, y)
            aimed = tab.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('tr').dataset.number", [x, y])
            if number % 10 == 0:
                tab.wait_for_timeout(1200)  # a look of the tail comes in between
            tab.mouse.down()
            tab.mouse.up()
            tab.wait_for_function("() => document.querySelector('.one')?.dataset.number")
            opened = tab.evaluate("() => document.querySelector('.one').dataset.number")
            tab.evaluate("() => { delete document.querySelector('.one').dataset.number; }")
            if opened != aimed:
                wrong.append((aimed, opened))
        assert wrong == []
        tab.mouse.move(400, 20)


def test_panel_of_a_call_goes_with_its_view(broker, page):
    tab = page.open(broker, "cluster")
    tab.get_by_role("button", name="Freeze").click()
    tab.locator("#calls [data-is=curl]").wait_for()
    tab.get_by_role("link", name="Journal").click()
    tab.get_by_role("heading", name="Journal").wait_for()
    assert not tab.locator("#calls").is_visible()
    broker.clock.resume()


def test_keys_are_listed_and_lead_to_views(broker, page):
    tab = page.open(broker, "topics")
    page.rows("topics")
    tab.keyboard.press("?")
    tab.get_by_role("dialog", name="Keys").get_by_text("Alt+1").wait_for()
    assert page.findings() == []
    tab.keyboard.press("Escape")
    tab.get_by_role("dialog").wait_for(state="detached")
    for key, view in (("Alt+4", "Groups"), ("Alt+0", "Cluster"), ("Alt+1", "Overview")):
        tab.keyboard.press(key)
        tab.get_by_role("heading", name=view, exact=True).wait_for()


def test_share_group_has_its_partitions_and_lag_in_the_list(broker, page, wires):
    broker.create_topic("shared", partitions=3)
    places = [AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=0) for index in range(3)]
    topics = [AlterShareGroupOffsetsRequestTopic(topic_name="shared", partitions=places)]
    altered = wires(broker.bootstrap_servers).call(AlterShareGroupOffsetsRequest(group_id="sharers", topics=topics), 0)
    assert altered.error_code == 0
    broker.produce("shared", "a", "b", partition=1)
    page.open(broker, "groups")
    page.agrees(
        "groups",
        lambda: [("share", "3", "2")],
        lambda rows: [(row["Type"], row["Partitions"], row["Lag"]) for row in rows if row["Group"] == "sharers"],
    )


def test_who_has_what_is_sorted_by_partition(broker, page):
    settings = {"group.id": "pair", "partition.assignment.strategy": "roundrobin"}
    pair = [Consumer({**broker.client_config("confluent"), **settings}) for _ in range(2)]
    for each in pair:
        each.subscribe(["read"])

    def step() -> None:
        for each in pair:
            each.poll(0.05)

    page.open(broker, "groups/pair")
    with Load(step):
        page.agrees(
            "assignments",
            lambda: ([f"read-{index}" for index in range(12)], 2),
            lambda rows: ([row["Partition"] for row in rows], len({row["Member"] for row in rows})),
        )
    for each in pair:
        each.close()
