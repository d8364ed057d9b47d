"""The five tasks that docs/page.md names, each from the first view by keyboard alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from clientwork import until
from confluent_kafka import Consumer, KafkaException, TopicPartition

from momus import Broker

PAGE = Path(__file__).parents[3] / "docs" / "page.md"
MOST_TABS = 150
FOCUSED = """() => {
  const at = document.activeElement;
  const label = at.id ? document.querySelector(`label[for="${at.id}"]`) : at.closest("label");
  return [at.getAttribute("aria-label"), label?.firstChild?.textContent, at.textContent];
}"""


@pytest.fixture(scope="module")
def broker():
    with Broker(journal_mb=4, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        broker.create_topic("orders", partitions=1)
        for number in range(5):
            broker.produce("orders", f"cup-{number}", key=f"table-{number}")
        member = Consumer({**broker.client_config("confluent"), "group.id": "slow"})
        member.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
        with pytest.raises(KafkaException):
            member.commit(offsets=[TopicPartition("nowhere", 0, 1)], asynchronous=False)
        member.close()
        yield broker


class Keys:
    """A tab of the first view that is only typed into."""

    def __init__(self, broker: Broker, page: Any) -> None:
        self.broker, self.page = broker, page
        self.tab = page.open(broker, "")
        self.tab.get_by_role("heading", name="Overview").wait_for()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tab.keyboard.press(key)

    def type(self, text: str) -> None:
        self.tab.keyboard.type(text)

    def to(self, name: str) -> None:
        """Tab to what has this name: its label, its text or what it is called to a screen reader."""
        for _ in range(MOST_TABS):
            self.press("Tab")
            if name in self.tab.evaluate(FOCUSED):
                return
        raise AssertionError(f"no Tab leads to {name}")

    def heading(self, name: str) -> None:
        self.tab.locator("h1").get_by_text(name, exact=True).wait_for()


def find_a_message(keys: Keys) -> None:
    keys.press("Alt+3")
    keys.page.rows("topics")
    keys.to("orders")
    keys.press("Enter")
    keys.heading("orders")
    keys.press("/")
    keys.type("cup-3")
    keys.to("Find")
    keys.press("Enter")
    keys.page.agrees("hits", lambda: ["table-3"], lambda rows: [row["Key"] for row in rows])


def see_why_a_commit_was_refused(keys: Keys) -> None:
    keys.page.rows("refused")
    keys.to("the request")
    keys.press("Enter")
    keys.tab.locator("[data-is=why]").get_by_text("there is no topic nowhere").wait_for()


def see_who_lags(keys: Keys) -> None:
    keys.page.rows("lagging")
    keys.to("slow")
    keys.press("Enter")
    keys.heading("slow")
    until(lambda: keys.tab.locator("[data-is=lag]").inner_text() == "4", "the lag is told")


def seek_a_group(keys: Keys) -> None:
    see_who_lags(keys)
    keys.to("To")
    keys.type("latest")
    keys.to("Try")
    keys.press("Enter")
    keys.page.rows("plan")
    keys.press("Escape")  # closes the lines of the call
    keys.to("Commit this")
    keys.press("Enter")
    until(lambda: keys.broker.committed("slow") == {("orders", 0): 5}, "the offsets have moved")


def set_a_fault(keys: Keys) -> None:
    keys.press("Alt+6")
    keys.heading("Faults")
    keys.tab.get_by_label("API", exact=True).wait_for()
    keys.to("API")
    keys.type("EndTxn")
    keys.to("Set")
    keys.press("Enter")
    until(lambda: [each["api"] for each in keys.broker.faults.list()] == [["EndTxn"]], "the fault is set")
    keys.press("Escape")
    keys.to("Remove")
    keys.press("Enter")
    until(lambda: keys.broker.faults.list() == [], "the fault is removed")


TASKS = {  # in the words of docs/page.md; the group is moved last
    "find a message": find_a_message,
    "see why a commit was refused": see_why_a_commit_was_refused,
    "see who lags": see_who_lags,
    "set and remove a fault": set_a_fault,
    "move a group's offsets": seek_a_group,
}


@pytest.mark.parametrize("task", TASKS)
def test_task_is_done_by_keyboard_alone(broker, page, task):
    TASKS[task](Keys(broker, page))


def test_tasks_are_those_that_the_page_names():
    (told,) = re.findall(r"\*\*By keyboard alone\*\*[^:]*: (.*?)\.", PAGE.read_text(), re.DOTALL)
    assert re.split(r",\s+(?:or\s+)?", " ".join(told.split())) == list(TASKS)
