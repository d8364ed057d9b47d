"""The last minutes as one timeline, and the lag of a group over time, from the broker's logs."""

from __future__ import annotations

from itertools import groupby

import pytest
from clientwork import until
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from page_kit import Load, producing

from momus import Broker


@pytest.fixture(scope="module")
def broker():
    with Broker(journal_mb=8, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


def commit(broker: Broker, group: str, offset: int) -> None:
    consumer = Consumer({**broker.client_config("confluent"), "group.id": group, "client.id": f"{group}-client"})
    try:
        consumer.commit(offsets=[TopicPartition("seen", 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def test_timeline_counts_what_the_journal_has_and_an_event_leads_to_its_request(broker, page):
    broker.create_topic("seen")
    owner = Consumer({**broker.client_config("confluent"), "group.id": "owned"})
    owner.subscribe(["seen"])
    until(lambda: owner.poll(0.1) is not None or owner.assignment(), "an assignment")
    with pytest.raises(KafkaException):
        commit(broker, "owned", 7)
    writer = Producer({**broker.client_config("confluent"), "transactional.id": "payments"})
    writer.init_transactions()
    writer.begin_transaction()
    writer.produce("seen", "x")
    writer.commit_transaction()
    fault = broker.faults.delay_on("OffsetCommit", 1, group="slow")
    commit(broker, "slow", 1)
    broker.clock.advance(seconds=30)
    commit(broker, "later", 1)
    tab = page.open(broker, "timeline")
    with Load(producing(broker, "seen", 1)):
        tab.locator(".uplot canvas").first.wait_for()
        until(lambda: len(page.rows("events")) >= 5, "events")
    rows = page.rows("events")
    assert {row["What"] for row in rows} == {"refused", "fault", "rebalance", "transaction", "clock", "restart"}
    (entry,) = broker.journal.entries(error="UNKNOWN_MEMBER_ID")
    (refused,) = [row for row in rows if row["What"] == "refused"]
    assert refused["In words"] == f"OffsetCommit: UNKNOWN_MEMBER_ID. {entry['why']}"
    (acted,) = [row for row in rows if row["What"] == "fault"]
    assert fault.name in acted["In words"]
    assert [row["In words"] for row in rows if row["What"] == "transaction"] == ["payments commits"]
    (moved,) = [row for row in rows if row["What"] == "clock"]
    assert float(moved["In words"].removeprefix("the clock moved by +").removesuffix(" s")) == pytest.approx(30, abs=1)
    seconds = broker.control.ask("GET", "/_admin/timeline?minutes=10")["seconds"]
    commits = broker.journal.entries(api="OffsetCommit")
    assert sum(each["apis"].get("OffsetCommit", 0) for each in seconds) == len(commits)
    assert sum(each["refused"] for each in seconds) == sum(bool(each["errors"]) for each in commits) == 1
    assert page.findings() == []
    owner.close()
    tab.get_by_label("rebalance").uncheck()
    tab.locator("table[data-of=events] tr", has_text="UNKNOWN_MEMBER_ID").get_by_role(
        "link", name="the request"
    ).click()
    tab.locator("[data-is=why]").get_by_text(entry["why"]).wait_for()
    broker.faults.clear()


def test_timeline_without_a_journal_says_so_and_turns_it_on(page):
    with Broker() as broker:
        tab = page.open(broker, "timeline")
        tab.get_by_text("No journal is kept").wait_for()
        tab.get_by_role("button", name="Keep the last 16 MB").click()
        broker.create_topic("seen")
        commit(broker, "g", 0)
        tab.locator(".uplot canvas").first.wait_for()
        assert page.page.locator("h1").text_content() == "The last minutes"
        page.leave()


def test_lag_over_time_is_known_from_before_the_page_was_opened(broker, page):
    broker.create_topic("lags", partitions=2)

    def committed(offset: int) -> None:
        consumer = Consumer({**broker.client_config("confluent"), "group.id": "lagging"})
        consumer.commit(offsets=[TopicPartition("lags", 0, offset), TopicPartition("lags", 1, 0)], asynchronous=False)
        consumer.close()

    broker.produce("lags", *"abcde", partition=0)
    committed(0)
    broker.clock.advance(minutes=2)
    committed(5)
    broker.clock.advance(minutes=2)
    broker.produce("lags", *"fg", partition=1)
    broker.clock.advance(minutes=1)
    answer = broker.control.ask("GET", "/_admin/groups/lagging/lag?minutes=10&points=61")
    assert [lag for lag, _ in groupby(each["lag"] for each in answer["points"])] == [None, 5, 0, 2]
    shown = page.open(broker, "groups/lagging").locator("[data-points]")
    until(lambda: shown.count() and shown.get_attribute("data-points").endswith(",2]"), "the chart is drawn")
    assert page.page.locator(".uplot canvas").count() == 1
    assert page.findings() == []
