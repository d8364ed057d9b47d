"""What people come to the page for, each from its first view: done in so many clicks. A choice in a list is one too."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from clientwork import until
from confluent_kafka import Consumer, KafkaException, TopicPartition

from momus import Broker

COUNTING = """
window.clicks = 0;
addEventListener("click", (event) => { if (event.isTrusted) window.clicks += 1; }, true);
addEventListener("change", (event) => { if (event.target.tagName === "SELECT") window.clicks += 1; }, true);
"""
TITLES = {"Security": "Security and quotas"}  # of views whose link says it in a word
AT_MS = 1_700_000_000_000
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def broker():
    with Broker(journal_mb=8, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        broker.create_topic("orders", partitions=3)
        for number in range(30):
            value = json.dumps({"order": {"number": number, "item": f"cup-{number}"}})
            broker.produce(
                "orders", value, key=f"table-{number}", headers={"trace": f"t{number}"}, partition=number % 3
            )
        owner = Consumer({**broker.client_config("confluent"), "group.id": "billing", "client.id": "owner"})
        owner.subscribe(["orders"])
        until(lambda: owner.poll(0.1) is not None or owner.assignment(), "an assignment")
        stranger = Consumer({**broker.client_config("confluent"), "group.id": "billing"})
        with pytest.raises(KafkaException):
            stranger.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
        stranger.close()
        broker.snapshot("before")
        yield broker
        owner.close()


@pytest.fixture(scope="module")
def secured():
    with Broker(
        security="sasl_plaintext", users={"alice": "a"}, config={"authorizer.class.name": AUTHORIZER}
    ) as broker:
        yield broker


class Task:
    """A tab in which clicks are counted."""

    def __init__(self, broker: Broker, page: Any) -> None:
        self.broker, self.page, self.tab = broker, page, page.page
        self.tab.add_init_script(COUNTING)
        page.open(broker, "")

    def go(self, *names: str) -> None:
        """To a view, and to what it lists."""
        for name in names:
            self.tab.get_by_role("link", name=name, exact=True).first.click()
        self.tab.locator("h1").get_by_text(TITLES.get(names[-1], names[-1]), exact=True).wait_for()

    def press(self, name: str) -> None:
        self.tab.get_by_role("button", name=name, exact=True).click()

    def find(self, text: str) -> None:
        self.tab.keyboard.press("/")
        self.tab.keyboard.type(text)
        self.press("Find")

    def found(self, keys: list[str]) -> None:
        self.page.agrees("hits", lambda: keys, lambda rows: sorted(row["Key"] for row in rows))


def find_by(where: str, text: str, *keys: str) -> Any:
    def work(task: Task) -> None:
        task.go("Topics", "orders")
        if where:
            task.tab.locator("#where").select_option(where)
        task.find(text)
        task.found(sorted(keys))

    return work


def find_by_time(task: Task) -> None:
    task.broker.create_topic("timed")
    task.broker.control.ask(
        "POST",
        "/_admin/topics/timed/records",
        {"records": [{"key": f"k{n}", "value": "v", "timestamp_ms": AT_MS + 60_000 * n} for n in range(4)]},
    )
    task.go("Topics", "timed")
    task.tab.get_by_label("Not before (UTC)").fill("2023-11-14T22:14:00")
    task.tab.get_by_label("Not after (UTC)").fill("2023-11-14T22:15:30")
    task.press("Find")
    task.found(["k1", "k2"])


def live_tail(task: Task) -> None:
    task.broker.create_topic("tailed", partitions=2)
    task.go("Topics", "tailed")
    task.press("Live tail")
    task.tab.get_by_text("live, the newest first").wait_for()
    task.broker.produce("tailed", "x", key="fresh", partition=1)
    task.found(["fresh"])


def export(button: str, lines: int) -> Any:
    def work(task: Task) -> None:
        task.go("Topics", "orders")
        with task.tab.expect_download() as download:
            task.press(button)
        text = download.value.path().read_text()
        assert text.count('"key"') == lines

    return work


def see_why_a_commit_was_refused(task: Task) -> None:
    row = task.tab.locator("table[data-of=refused] tr", has_text="UNKNOWN_MEMBER_ID").first
    row.get_by_role("link", name="the request").click()
    task.tab.locator("[data-is=why]").wait_for()


def see_who_has_had_a_partition(task: Task) -> None:
    task.go("Groups", "billing")
    task.page.rows("owners")
    task.tab.get_by_label("Partition", exact=True).select_option("orders-2")
    (row,) = task.page.rows("owners")
    assert (row["Client"], row["To (UTC)"], row["From (UTC)"] != "") == ("owner", "still", True)


def see_the_lag(task: Task) -> None:
    task.go("Groups", "billing")
    task.tab.locator(".uplot canvas").first.wait_for()


def compare_with_a_snapshot(task: Task) -> None:
    task.broker.create_topic("since", partitions=2)
    task.go("Cluster")
    task.tab.locator("table[data-of=snapshots]").wait_for()
    task.press("Compare")  # the newest snapshot and now are chosen
    until(lambda: any(row["Topic"] == "since" for row in task.page.rows("diff-topics")), "the new topic is told")


def follow_a_reason_to_its_fault(task: Task) -> None:
    fault = task.broker.faults.inject_error("OffsetCommit", "GROUP_AUTHORIZATION_FAILED", group="faulted")
    consumer = Consumer({**task.broker.client_config("confluent"), "group.id": "faulted"})
    with pytest.raises(KafkaException):
        consumer.commit(offsets=[TopicPartition("orders", 0, 3)], asynchronous=False)
    consumer.close()
    task.tab.locator("table[data-of=refused]").get_by_role("link", name=fault.name, exact=True).first.click()
    task.tab.locator("table[data-of=faults] tr.changed").wait_for()
    fault.remove()


def create_a_topic(task: Task) -> None:
    task.go("Topics")
    task.tab.get_by_text("New topic", exact=True).click()
    task.tab.get_by_label("Topic name").fill("made")
    task.press("Create the topic")
    until(lambda: "made" in topics(task), "the topic is there")


def topics(task: Task) -> set[str]:
    return {row["topic"] for row in task.broker.control.ask("GET", "/_admin/topics")["topics"]}


def alter_a_topic(task: Task) -> None:
    task.broker.create_topic("altered")
    task.go("Topics", "altered")
    task.tab.get_by_role("combobox", name="Setting", exact=True).fill("retention.ms")
    task.tab.get_by_label("Set to").fill("90000")
    task.press("Change the setting")
    page = task.page
    page.agrees("configs", lambda: "90000", lambda rows: {r["Setting"]: r["Value"] for r in rows}["retention.ms"])


def delete_a_topic(task: Task) -> None:
    task.broker.create_topic("gone")
    task.go("Topics", "gone")
    task.tab.get_by_label("with all its records").check()
    task.press("Delete the topic")
    until(lambda: "gone" not in topics(task), "the topic is deleted")


def delete_a_group(task: Task) -> None:
    task.broker.control.ask("POST", "/_admin/groups/old/seek", {"to": "earliest", "topic": "orders"})
    task.go("Groups", "old")
    task.tab.get_by_label("with its offsets").check()
    task.press("Delete the group")
    until(lambda: task.broker.committed("old") == {}, "the group is deleted")


def seek_a_group(task: Task) -> None:
    task.broker.control.ask("POST", "/_admin/groups/moved/seek", {"to": "earliest", "topic": "orders"})
    task.go("Groups", "moved")
    task.tab.locator("main select").last.select_option("latest")
    task.press("Try")
    task.page.rows("plan")
    task.press("Commit this")
    until(lambda: set(task.broker.committed("moved").values()) == {10}, "the offsets have moved")


def produce_several(task: Task) -> None:
    task.broker.create_topic("several")
    task.go("Topics", "several")
    task.tab.get_by_label("What the text is").select_option("lines")
    task.tab.get_by_label("Value", exact=True).fill("one\ntwo\nthree")
    task.press("Produce")
    until(lambda: len(task.broker.consume("several")) == 3, "all are there")


def set_a_quota(task: Task) -> None:
    task.go("Security")
    task.tab.get_by_label("Named").fill("billing")
    task.tab.get_by_label("At most").fill("1000")
    task.press("Set the quota")
    until(lambda: task.broker.control.ask("GET", "/_admin/quotas"), "the quota is set")


def set_a_fault(task: Task) -> None:
    task.go("Faults")
    task.tab.get_by_label("API", exact=True).fill("ListOffsets")
    task.tab.get_by_label("Trigger").select_option("times")
    task.tab.get_by_label("How many").fill("2")
    task.press("Set")
    until(task.broker.faults.list, "the fault is set")
    task.broker.faults.clear()


def release_what_is_held(task: Task) -> None:
    hold = task.broker.faults.hold("OffsetCommit", group="held")
    consumer = Consumer({**task.broker.client_config("confluent"), "group.id": "held"})
    committing = threading.Thread(
        target=consumer.commit, kwargs={"offsets": [TopicPartition("orders", 0, 1)], "asynchronous": False}
    )
    committing.start()
    hold.wait_until_held(timeout=120)
    task.go("Faults")
    task.press("Release")
    committing.join(120)
    assert not committing.is_alive()
    consumer.close()
    hold.remove()


TASKS = {
    "find a text": (3, find_by("", "cup-21", "table-21")),
    "find a key": (4, find_by("key", "table-21", "table-21")),
    "find a value": (4, find_by("value", "cup-21", "table-21")),
    "find a header": (4, find_by("header", "t21", "table-21")),
    "find by a JSON path": (4, find_by("path", "$.order.number < 2", "table-0", "table-1")),
    "find by time": (3, find_by_time),
    "live tail": (3, live_tail),
    "export lines": (3, export("Export JSON lines", 30)),
    "export a load file": (3, export("Export a load file", 30)),
    "why a commit was refused": (1, see_why_a_commit_was_refused),
    "who has had partition 2": (3, see_who_has_had_a_partition),
    "lag over time": (2, see_the_lag),
    "compare with a snapshot": (2, compare_with_a_snapshot),
    "from why to the fault": (1, follow_a_reason_to_its_fault),
    "create a topic": (3, create_a_topic),
    "alter a topic": (3, alter_a_topic),
    "delete a topic": (4, delete_a_topic),
    "delete a group": (4, delete_a_group),
    "seek a group": (5, seek_a_group),
    "produce several": (4, produce_several),
    "set a quota": (2, set_a_quota),
    "set a fault": (3, set_a_fault),
    "release what is held": (2, release_what_is_held),
}


@pytest.mark.parametrize("name", TASKS)
def test_task_takes_so_many_clicks(broker, page, name):
    clicks, work = TASKS[name]
    task = Task(broker, page)
    work(task)
    assert task.tab.evaluate("window.clicks") == clicks


def add_a_user(task: Task) -> None:
    task.go("Security")
    task.tab.get_by_label("User name").fill("bob")
    task.tab.get_by_label("Its password").fill("b")
    task.press("Add the user")
    until(lambda: "bob" in task.broker.users.list(), "the user is there")


def add_an_acl(task: Task) -> None:
    task.go("Security")
    task.tab.get_by_label("Principal").fill("User:carol")
    task.tab.get_by_label("Resource name").fill("orders")
    task.press("Add the ACL")
    until(lambda: any(each["principal"] == "User:carol" for each in task.broker.acls.list()), "the ACL is there")


@pytest.mark.parametrize("work", [add_a_user, add_an_acl])
def test_task_of_security_takes_two_clicks(secured, page, work):
    task = Task(secured, page)
    work(task)
    assert task.tab.evaluate("window.clicks") == 2
