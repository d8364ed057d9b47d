"""What happened, on the page: who had which partition when, restarts, the fault that acted, two sides compared."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from clientwork import until
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from page_kit import Load, producing
from test_control import momus as momus_command
from test_page_groups import HOSTILE

import momus
from momus import Broker


@pytest.fixture(scope="module")
def broker():
    with Broker(
        brokers=2, config={"group.initial.rebalance.delay.ms": 0, "log.cleaner.enable": "false"}, journal_mb=4
    ) as broker:
        yield broker


def seconds(text: str) -> float:
    """When a shown date and time was."""
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_owners_of_a_partition_are_told_with_times_and_epochs(broker, page, kind):
    broker.create_topic(f"owned-{kind}", partitions=3)

    def joined(client: str) -> Consumer:
        settings = {"group.id": f"own-{kind}", "group.protocol": kind, "client.id": client}
        made = Consumer({**broker.client_config("confluent"), **settings})
        made.subscribe([f"owned-{kind}"])
        until(lambda: made.poll(0.1) is not None or made.assignment(), "an assignment")
        return made

    first = joined("one")
    tab = page.open(broker, f"groups/own-{kind}")
    page.agrees("owners", lambda: {("one", "still")}, lambda rows: {(row["Client"], row["To (UTC)"]) for row in rows})
    first.close()
    broker.clock.advance(minutes=5)
    second = joined("two")
    (member,) = broker.control.ask("GET", f"/_admin/groups/own-{kind}/details")["members"]
    tab.get_by_label("Partition", exact=True).select_option(f"owned-{kind}-2")
    page.agrees("owners", lambda: ["two", "one"], lambda rows: [row["Client"] for row in rows])
    now, before = page.rows("owners")
    assert (now["To (UTC)"], before["To (UTC)"] > before["From (UTC)"]) == ("still", True)
    assert 299 < seconds(now["From (UTC)"]) - seconds(before["To (UTC)"]) < 420
    assert int(now["Epoch"]) > int(before["Epoch"]) >= 1
    assert now["Member"] == member["member"]
    page.agrees("assignments", lambda: {"two"}, lambda rows: {row["Client"] for row in rows})
    held = {(row["Partition"], row["Since (UTC)"]) for row in page.rows("assignments")}
    assert (f"owned-{kind}-2", now["From (UTC)"]) in held
    word = "generation" if kind == "classic" else "epoch"
    assert {row[f"Since {word}"] for row in page.rows("assignments")} == {now["Epoch"]}
    assert page.findings() == []
    second.close()
    page.agrees("owners", lambda: 2, lambda rows: sum(row["To (UTC)"] != "still" for row in rows))


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_who_has_and_who_had_what_agree_with_the_admin_api_under_load(broker, page, kind):
    topic, group = f"passed-{kind}", f"pass-{kind}"
    broker.create_topic(topic, partitions=6)
    admin, turn = AdminClient(broker.client_config("confluent")), threading.Lock()
    produce, members = producing(broker, topic, 6), list[Consumer]()

    def step() -> None:
        produce()
        with turn:
            for each in members:
                if each.poll(0.01) is not None:
                    each.commit(asynchronous=False)

    def join(client: str) -> None:
        settings = {"group.id": group, "group.protocol": kind, "client.id": client, "enable.auto.commit": False}
        made = Consumer({**broker.client_config("confluent"), **settings})
        made.subscribe([topic])
        members.append(made)

    def asked() -> dict[str, Any]:
        (found,) = json.loads(
            momus_command("group", "describe", group, "--json", "-b", broker.bootstrap_servers).stdout
        )
        return found

    def held() -> set[tuple[str, str, str]]:
        (future,) = admin.describe_consumer_groups([group]).values()
        found = [(each, place) for each in future.result().members for place in each.assignment.topic_partitions]
        return {(f"{place.topic}-{place.partition}", each.member_id, each.client_id) for each, place in found}

    def all_held_by(count: int) -> bool:
        found = held()
        return len(found) == 6 and len({client for *_, client in found}) == count

    def shown(rows: list[dict[str, str]]) -> set[tuple[str, str, str]]:
        return {
            (row["Partition"], row["Member"], row["Client"]) for row in rows if row.get("To (UTC)", "still") == "still"
        }

    def agrees() -> None:
        page.agrees("assignments", held, shown)
        page.agrees("owners", held, shown)
        page.agrees(
            "members",
            lambda: {each["member"]: (each["epoch"], each["has"]) for each in asked()["members"]},
            lambda rows: {row["Member"]: (int(row["Epoch"] or -1), int(row["Has"])) for row in rows},
        )

    with Load(step):
        try:
            for client in ("one", "two", "three"):
                before = asked().get("group_epoch", 0) if members else 0
                with turn:
                    join(client)
                until(lambda: all_held_by(len(members)), f"{client} has its part")
                if client == "one":
                    page.open(broker, f"groups/{group}")
                agrees()
                if kind == "consumer":
                    since = {int(r["Since epoch"]) for r in page.rows("assignments") if r["Client"] == client}
                    assert before < min(since) <= max(since) <= asked()["group_epoch"]
            with turn:
                members.pop(0).close()
            until(lambda: all_held_by(2), "the others have what the first had")
            agrees()
            past = [row for row in page.rows("owners") if row["Client"] == "one"]
            assert {row["Partition"] for row in past} == {f"{topic}-{index}" for index in range(6)}
            assert all(row["To (UTC)"] > row["From (UTC)"] for row in past)
        finally:
            with turn:
                while members:
                    members.pop().close()
    assert page.findings() == []


def test_stops_starts_and_a_reset_are_on_the_timeline(page):
    with Broker(brokers=2) as broker:
        tab = page.open(broker, "timeline")
        tab.get_by_text("live", exact=True).wait_for()
        broker.stop_broker(1)
        broker.start_broker(1)

        def told() -> list[str]:
            return [row["In words"] for row in page.rows("events") if row["What"] == "restart"]

        until(lambda: len(told()) == 3, "the stop and the start")
        assert told() == ["broker 1 was started", "broker 1 was stopped", "the broker started"]
        broker.reset()
        until(lambda: told()[0] == "the cluster was reset", "the reset")
        assert told()[1:] == ["broker 1 was started", "broker 1 was stopped", "the broker started"]
        page.leave()


@contextmanager
def served(control: str, folder: Path) -> Iterator[str]:
    """A broker process with a control endpoint; its address."""
    command = [
        sys.executable,
        "-m",
        "momus",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--control",
        control,
        "-d",
        str(folder),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield next(line for line in process.stdout if line.startswith("momus control ")).split()[2]
        process.terminate()


def test_restart_of_the_process_is_on_a_timeline_that_stays_open(page, tmp_path):
    def told() -> list[str]:
        return [row["In words"] for row in page.rows("events") if row["What"] == "restart"]

    with served("127.0.0.1:0", tmp_path) as address:
        page.page.goto(f"http://{address}/ui#/default/timeline")
        until(lambda: told() == ["the broker started"], "the start")
    with served(address, tmp_path):
        until(lambda: told() == ["the broker started"] * 2, "the restart")
        page.leave()
    page.console[:] = [each for each in page.console if "net::ERR" not in each]


def test_timeline_that_begins_again_takes_the_place_of_what_it_repeats(broker, page):
    """As after the stream has broken off: its first answer tells the last minutes once more."""
    broker.create_topic("again")
    told = broker.control.ask("GET", "/_admin/timeline?minutes=10")
    requests = sum(sum(each["apis"].values()) for each in told["seconds"])
    event = f"event: answer\ndata: {json.dumps(told)}\n\n"
    page.page.route("**/events?*", lambda route: route.fulfill(body=event * 2, content_type="text/event-stream"))
    tab = page.open(broker, "timeline")
    until(lambda: page.rows("events"), "events")
    said = tab.locator("main p[role=status]").text_content()
    assert int(said.split(" ")[0].replace(",", "")) == requests > 0
    assert len(page.rows("events")) == len(told["events"])
    page.leave()


def test_why_leads_to_the_fault_that_acted(broker, page):
    broker.create_topic("faulty")
    fault = broker.faults.inject_error("OffsetCommit", "GROUP_AUTHORIZATION_FAILED", group="faulted", trigger="once")
    consumer = Consumer({**broker.client_config("confluent"), "group.id": "faulted"})
    with pytest.raises(Exception, match="GROUP_AUTHORIZATION_FAILED"):
        consumer.commit(offsets=[TopicPartition("faulty", 0, 3)], asynchronous=False)
    consumer.close()
    for view, table in (("groups/faulted", "history"), ("journal?api=OffsetCommit&group=faulted", "entries")):
        tab = page.open(broker, view)
        tab.locator(f"table[data-of={table}]").get_by_role("link", name=fault.name, exact=True).click()
        tab.locator("table[data-of=faults] tr.changed", has_text=fault.name).wait_for()
    broker.faults.clear()
    tab.get_by_text(f"{fault.name} is not set any more.").wait_for()


def test_snapshot_and_now_are_compared_side_by_side(broker, page):
    broker.create_topic("told", partitions=2)
    broker.produce("told", "same", partition=1)
    before = broker.snapshot()
    broker.produce("told", "one coffee", key=HOSTILE, partition=1)
    broker.create_topic("more", config={"retention.ms": 1})
    consumer = Consumer({**broker.client_config("confluent"), "group.id": HOSTILE})
    consumer.commit(offsets=[TopicPartition("told", 1, 2)], asynchronous=False)
    consumer.close()
    tab = page.open(broker, "cluster")
    tab.get_by_label("First").select_option(str(before))
    tab.get_by_role("button", name="Compare").click()
    wanted = momus.diff(before, broker)
    assert {row["Topic"]: (row[before], row["now"]) for row in page.rows("diff-topics")} == {
        "more": ("no such topic", "1 partitions")
    }
    assert wanted.topics == {"more": (None, 1)}
    assert [(r["Topic"], r["Setting"], r["now"]) for r in page.rows("diff-settings")] == [("more", "retention.ms", "1")]
    (row,) = [row for row in page.rows("diff-records") if row["Partition"] == "told-1"]
    assert (row[before], row["now"]) == ("none", f"1 {HOSTILE}: one coffee")
    assert [(r["Group"], r["Partition"], r[before], r["now"]) for r in page.rows("diff-offsets")] == [
        (HOSTILE, "told-1", "nothing committed", "2")
    ]
    assert wanted.offsets == {(HOSTILE, "told", 1): (None, 2)}
    line = tab.locator("[data-is=python]").text_content()
    assert eval(line, {"broker": broker, "momus": momus}) == wanted
    assert page.findings() == []
    tab.get_by_label("First").select_option("")
    tab.get_by_role("button", name="Compare").click()
    tab.get_by_text("Nothing is different.").wait_for()
