"""The page's journal and faults: a live tail, a request with its reply and its refusal, and a fault made from it."""

from __future__ import annotations

import threading

import pytest
from clientwork import until
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from page_kit import Load, producing

from momus import Broker

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture(scope="module")
def broker():
    with Broker(journal_mb=8) as broker:
        broker.create_topic("j")
        yield broker


@pytest.fixture(autouse=True)
def _no_faults(broker):
    yield
    broker.faults.clear()


def commit(broker: Broker, client: str, group: str, offset: int = 3) -> None:
    consumer = Consumer({**broker.client_config("confluent"), "group.id": group, "client.id": client})
    try:
        consumer.commit(offsets=[TopicPartition("j", 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def test_tail_shows_under_load_what_the_journal_has(broker, page):
    page.open(broker, "journal")
    with Load(producing(broker, "j", 1)):
        page.rows("entries")
        page.page.get_by_label("Group").fill("tail")
        page.page.keyboard.press("Tab")
        commit(broker, HOSTILE, "tail")
        until(lambda: any(row["Client"] == HOSTILE for row in page.rows("entries")), "the commit is in the tail")

    def known():
        entries = broker.journal.entries(group="tail", api="OffsetCommit")
        return [
            (f"OffsetCommit v{e['version']}", e["client_id"], f"{e['latency_ms']:.2f}", str(e["bytes_in"]), "ok")
            for e in entries
        ]

    page.agrees(
        "entries",
        known,
        lambda rows: [
            (row["API"], row["Client"], row["Took ms"], row["Bytes in"], row["Answer"])
            for row in rows
            if row["API"].startswith("OffsetCommit")
        ],
    )
    assert page.page.locator("main script").count() == 0
    assert page.findings() == []


def test_refused_request_says_why_and_becomes_a_fault(broker, page):
    broker.create_topic("refused")
    with pytest.raises(KafkaException):
        commit_unknown(broker)
    tab = page.open(broker, "journal")
    tab.get_by_label("Error").fill("UNKNOWN_MEMBER_ID")
    tab.keyboard.press("Tab")
    (row,) = page.rows("entries")
    (entry,) = broker.journal.entries(error="UNKNOWN_MEMBER_ID")
    assert (row["Answer"], row["Why"]) == ("UNKNOWN_MEMBER_ID", entry["why"])
    tab.get_by_role("button", name="OffsetCommit").click()
    assert tab.locator("[data-is=why]").text_content() == entry["why"]
    tree = tab.locator("ul.tree").first.text_content()
    assert 'group_id: "owned"' in tree
    assert "committed_offset: 7" in tree
    tab.get_by_role("link", name="make this a fault").click()
    tab.get_by_role("button", name="Set", exact=True).click()
    (shown,) = page.rows("faults")
    (fault,) = broker.faults.list()
    assert fault["api"] == ["OffsetCommit"]
    assert (fault["group"], fault["client_id"], fault["error"]) == ("owned", "stranger", "COORDINATOR_LOAD_IN_PROGRESS")
    assert (shown["Name"], shown["Met"], shown["Hits"]) == (fault["name"], "0", "0")
    line = tab.locator("[data-is=python]").text_content()
    made = eval(line, {"broker": broker})
    assert {**made.state(), "name": ""} == {**fault, "name": ""}


def test_page_stays_still_from_press_to_release_so_that_no_click_is_lost(broker, page):
    waiting, tab = [], page.page
    tab.route("**/events?*", lambda route: waiting.append(route))
    page.open(broker, "faults?api=OffsetCommit")
    button = tab.get_by_role("button", name="Set", exact=True)
    button.wait_for()
    before = button.bounding_box()
    button.hover()
    tab.mouse.down()
    with tab.expect_response("**/events?*"):
        waiting[-1].continue_()
    tab.wait_for_timeout(500)  # the answer stands above the button, and would move it
    assert button.bounding_box() == before
    tab.mouse.up()
    (shown,) = page.rows("faults")
    assert shown["Name"] == broker.faults.list()[0]["name"]
    assert button.bounding_box() != before


FIRST_TEXTS = "labels => labels.map((each) => each.firstChild.textContent)"  # without the options of a select


def spelled(word: str) -> str:
    return "API" if word == "api" else word.capitalize().replace("_", " ")


def test_form_of_a_fault_has_the_fields_and_filters_that_its_kind_takes(broker, page):
    tab = page.open(broker, "faults")
    kinds = broker.control.ask("GET", "/_admin/faults/kinds")
    for kind in kinds:
        tab.locator("main select").first.select_option(kind["fault"])
        wanted = [spelled(each["name"]) for each in (*kind["fields"], *kind["filters"])]
        assert tab.locator("main span.inner label").evaluate_all(FIRST_TEXTS) == wanted
    tab.locator("main select").first.select_option("disconnect_on")
    tab.locator("main span.inner select").select_option("middle")
    tab.get_by_label("Version", exact=True).fill("8-9")
    tab.get_by_label("Partition", exact=True).fill("3")
    tab.get_by_role("button", name="Set", exact=True).click()
    page.rows("faults")
    (fault,) = broker.faults.list()
    given = {"fault": "disconnect_on", "when": "middle", "version": [8, 9], "partition": 3}
    assert {key: fault[key] for key in given} == given


def commit_unknown(broker: Broker) -> None:
    owner = Consumer({**broker.client_config("confluent"), "group.id": "owned", "client.id": "owner"})
    owner.subscribe(["refused"])
    until(lambda: owner.poll(0.1) is not None or owner.assignment(), "an assignment")
    stranger = Consumer({**broker.client_config("confluent"), "group.id": "owned", "client.id": "stranger"})
    try:
        stranger.commit(offsets=[TopicPartition("refused", 0, 7)], asynchronous=False)
    finally:
        owner.close()
        stranger.close()


def test_faults_agree_with_the_control_plane_under_load_and_let_go_by_a_button(broker, page):
    broker.create_topic("j2")
    broker.faults.delay_on("Produce", 1, topic="j2")
    hold = broker.faults.hold("OffsetCommit", group="kept")
    tab = page.open(broker, "faults")
    ended = threading.Event()

    def work():
        commit(broker, "c", "kept")
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    hold.wait_until_held()
    with Load(producing(broker, "j2", 1)):
        page.follows("faults", lambda: broker.faults.list()[0]["hits"], lambda rows: int(rows[0]["Hits"]))
    page.agrees(
        "faults",
        lambda: [(f["name"], f["fault"], f["calls"], f["hits"], f["held"]) for f in broker.faults.list()],
        lambda rows: [(r["Name"], r["Fault"], int(r["Met"]), int(r["Hits"]), int(r["Holds"])) for r in rows],
    )
    assert broker.faults.list()[1]["held"] == 1
    (held,) = page.rows("held")
    assert (held["By"], held["API"].split()[0], held["Client"]) == (hold.name, "OffsetCommit", "c")
    assert held["Names"].startswith("kept")
    assert not ended.is_set()
    assert page.findings() == []
    tab.get_by_role("button", name="Release").click()
    thread.join(60)
    assert ended.is_set()
    tab.get_by_role("button", name="Remove").first.click()
    until(lambda: len(broker.faults.list()) == 1, "one is removed")
    page.agrees("faults", lambda: 1, len)


def test_journal_is_turned_on_by_a_button(page):
    with Broker() as broker:
        tab = page.open(broker, "journal")
        tab.get_by_text("No journal is kept.").wait_for()
        tab.get_by_role("button", name="Keep the last 16 MB").click()
        broker.create_topic("seen")
        producer = Producer(broker.client_config("confluent"))
        producer.produce("seen", "x")
        producer.flush(30)
        until(lambda: any(row["API"].startswith("Produce") for row in page.rows("entries")), "the tail has it")
        assert broker.control.ask("GET", "/_admin/journal")["bytes"] == 16 << 20
        page.leave()
