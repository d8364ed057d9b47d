"""The page's first view: whether the cluster is up, what is refused, who lags; and what all views look like."""

from __future__ import annotations

import pytest
from clientwork import until
from confluent_kafka import Consumer, KafkaException, TopicPartition

from momus import Broker

# Of each row of controls in the forms: the tops of its labels, and the tops and heights of its controls.
FORMS = """() => [...document.querySelectorAll("main .bar")].filter((bar) => bar.offsetParent).flatMap((bar) => {
  const rows = new Map();
  for (const each of bar.querySelectorAll("input:not([type=checkbox]), select, button")) {
    const at = each.getBoundingClientRect();
    const label = each.id ? document.querySelector(`label[for="${each.id}"]`) : each.closest("label");
    const key = Math.round(at.bottom);
    const row = rows.get(key) ?? { bottoms: key, tops: new Set(), labels: new Set() };
    row.tops.add(Math.round(at.top));
    if (label && !label.matches(".tick")) row.labels.add(Math.round(label.getBoundingClientRect().top));
    rows.set(key, row);
  }
  return [...rows.values()].map((row) => [row.bottoms, [...row.tops], [...row.labels]]);
})"""
LEGEND = """() => [...document.querySelectorAll(".u-legend")].map((legend) => ({
  text: legend.textContent,
  borders: [...legend.querySelectorAll("th, td")].map((each) => getComputedStyle(each).borderBottomWidth),
  grounds: [...legend.querySelectorAll("th, td")].map((each) => getComputedStyle(each).backgroundColor),
  marks: [...legend.querySelectorAll(".u-marker")].map((each) => getComputedStyle(each).backgroundColor),
}))"""
CLEAR = "rgba(0, 0, 0, 0)"


@pytest.fixture(scope="module")
def broker():
    config = {"group.initial.rebalance.delay.ms": 0}
    with Broker(brokers=2, journal_mb=4, config=config) as broker:
        broker.create_topic("orders", partitions=3)
        for number in range(9):
            broker.produce("orders", f"cup {number}", partition=number % 3)
        for group, offset in (("slow", 0), ("slower", -1), ("quick", 3)):
            member = Consumer({**broker.client_config("confluent"), "group.id": group, "client.id": group})
            places = [TopicPartition("orders", n, max(0, offset)) for n in range(3 if offset < 0 else 1)]
            member.commit(offsets=places, asynchronous=False)
            member.close()
        yield broker


def refused(broker: Broker, topic: str, partition: int) -> None:
    client = Consumer({**broker.client_config("confluent"), "group.id": "lost", "client.id": "lost"})
    with pytest.raises(KafkaException):
        client.commit(offsets=[TopicPartition(topic, partition, 1)], asynchronous=False)
    client.close()


def test_first_view_says_whether_the_cluster_is_up(broker, page):
    tab = page.open(broker, "")
    tab.get_by_role("heading", name="Overview").wait_for()
    tab.get_by_text("2 of 2 brokers up").wait_for()
    broker.stop_broker(2)
    tab.get_by_text("1 of 2 brokers up").wait_for()
    tab.get_by_text("Broker 2 is stopped").wait_for()
    broker.pause_broker(1)
    tab.get_by_text("Broker 1 is paused").wait_for()
    broker.resume_broker(1)
    broker.start_broker(2)
    tab.get_by_text("2 of 2 brokers up").wait_for()


def test_first_view_says_who_lags_the_most_first(broker, page):
    tab = page.open(broker, "")
    page.agrees(
        "lagging",
        lambda: [("slower", "9"), ("slow", "3")],
        lambda rows: [(row["Group"], row["Lag"]) for row in rows],
    )
    tab.get_by_text("2 of 3 groups lag").wait_for()
    tab.locator("table[data-of=lagging]").get_by_role("link", name="slower").click()
    tab.locator("h1").get_by_text("slower").wait_for()


def test_first_view_says_what_was_refused_and_why_once_for_each_reason(broker, page):
    tab = page.open(broker, "")
    tab.get_by_text("Nothing was refused").wait_for()
    before = broker.journal.entries(api="OffsetCommit", error="UNKNOWN_TOPIC_OR_PARTITION")
    assert before == []
    refused(broker, "nowhere", 0)
    refused(broker, "orders", 7)
    times = len(broker.journal.entries(api="OffsetCommit", error="UNKNOWN_TOPIC_OR_PARTITION"))

    def told() -> dict[str, int]:
        return {row["What and why"]: int(row["Times"]) for row in page.rows("refused")}

    until(lambda: sum(told().values()) == times, "each refusal is told")
    assert set(told()) == {
        "OffsetCommit: UNKNOWN_TOPIC_OR_PARTITION. there is no topic nowhere",
        "OffsetCommit: UNKNOWN_TOPIC_OR_PARTITION. topic orders has 3 partitions, and none with the number 7",
    }
    assert page.findings() == []
    tab.locator("table[data-of=refused]").get_by_role("link", name="the request").first.click()
    tab.locator("[data-is=why]").get_by_text("topic orders has 3 partitions").wait_for()
    tab = page.open(broker, "groups/lost")
    until(lambda: {row["Why"] for row in page.rows("history")} >= {"there is no topic nowhere"}, "the history says why")


def test_group_shows_partitions_that_a_member_has_and_has_not_committed(broker, page):
    owner = Consumer({**broker.client_config("confluent"), "group.id": "fresh", "client.id": "owner"})
    owner.subscribe(["orders"])
    until(lambda: owner.poll(0.1) is not None or owner.assignment(), "an assignment")
    owner.commit(offsets=[TopicPartition("orders", 1, 2)], asynchronous=False)
    tab = page.open(broker, "groups/fresh")
    page.agrees(
        "offsets",
        lambda: [("0", "nothing", "3", ""), ("1", "2", "3", "1"), ("2", "nothing", "3", "")],
        lambda rows: [tuple(row[each] for each in ("Partition", "Committed", "End", "Lag")) for row in rows],
    )
    assert tab.locator("[data-is=lag]").inner_text() == "1"
    assert {row["Member"] != "" for row in page.rows("offsets")} == {True}
    owner.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 700])
@pytest.mark.parametrize("view", ["faults", "topics/orders", "groups/slow", "journal", "security", "cluster"])
def test_fields_of_one_row_stand_on_one_height_with_their_labels(broker, page, view, scheme, width):
    page.page.emulate_media(color_scheme=scheme)
    page.page.set_viewport_size({"width": width, "height": 900})
    tab = page.open(broker, view)
    if view == "faults":
        tab.get_by_label("Trigger").select_option("with_probability")
    until(lambda: tab.evaluate(FORMS), "there is a form")
    for _, tops, labels in tab.evaluate(FORMS):
        assert len(tops) == 1, (view, tops)
        assert len(labels) <= 1, (view, labels)


def test_legend_of_a_chart_has_a_filled_mark_and_no_box(broker, page):
    tab = page.open(broker, "timeline")
    tab.locator(".u-legend").nth(2).wait_for()
    for legend in tab.evaluate(LEGEND):
        assert set(legend["borders"]) == {"0px"}
        assert set(legend["grounds"]) == {CLEAR}
        marks = legend["marks"]
        assert CLEAR not in marks[-1:], marks
        assert "--" not in legend["text"]
        assert "–" in legend["text"]
    first = tab.evaluate(LEGEND)[0]["marks"]
    assert len(set(first)) == len(first)
