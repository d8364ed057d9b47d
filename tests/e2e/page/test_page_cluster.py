"""The page's transactions and cluster: states and timeline against `momus txn`, brokers, clock, snapshots and forks."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from clientwork import until
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from page_kit import VIEWS, Load, producing, topics_of
from test_control import momus

from momus import Broker

HOSTILE = '<b onclick="x">id/\u202e'


@pytest.fixture(scope="module")
def broker():
    with Broker(brokers=3, journal_mb=8, config={"default.replication.factor": 3}) as broker:
        yield broker


def producer_of(broker: Broker, name: str) -> Producer:
    made = Producer({**broker.client_config("confluent"), "transactional.id": name})
    made.init_transactions()
    return made


def asked(broker: Broker, *words: str):
    return json.loads(momus("txn", *words, "--json", "-b", broker.bootstrap_servers).stdout)


def test_transactions_agree_with_the_admin_requests_under_load(broker, page):
    broker.create_topic("paid", partitions=3)
    still = producer_of(broker, HOSTILE)
    still.begin_transaction()
    still.produce("paid", "x", partition=1)
    still.flush(30)
    busy = producer_of(broker, "busy")

    def step():
        busy.begin_transaction()
        busy.produce("paid", "x")
        busy.commit_transaction()

    step()
    page.open(broker, "transactions")

    def epoch() -> int:
        (found,) = asked(broker, "describe", "busy")
        return found["producer_epoch"]

    with Load(step):
        page.follows(
            "transactions", epoch, lambda rows: next(int(r["Epoch"]) for r in rows if r["Transactional id"] == "busy")
        )

    def described():
        found = asked(broker, "describe", HOSTILE, "busy")
        return {
            each["transactional_id"]: (
                each["state"],
                each["producer_id"],
                each["producer_epoch"],
                len(each["partitions"]),
            )
            for each in found
        }

    page.agrees(
        "transactions",
        described,
        lambda rows: {
            row["Transactional id"]: (row["State"], int(row["Producer id"]), int(row["Epoch"]), int(row["Partitions"]))
            for row in rows
        },
    )
    assert described()[HOSTILE][0] == "Ongoing"
    assert page.page.locator("main b").count() == 0
    assert page.findings() == []
    still.abort_transaction()


def test_timeline_tells_each_step_and_the_fenced_zombie(broker, page):
    broker.create_topic("line")
    zombie = producer_of(broker, "fenced")
    zombie.begin_transaction()
    zombie.produce("line", "x")
    zombie.flush(30)
    heir = producer_of(broker, "fenced")
    with pytest.raises(KafkaException):
        zombie.commit_transaction()
    heir.begin_transaction()
    heir.produce("line", "y")
    heir.commit_transaction()
    page.open(broker, "transactions/fenced")
    until(lambda: page.rows("events")[0]["What"] == "CompleteCommit", "the last step")
    rows = page.rows("events")[::-1]
    assert [row["What"] for row in rows] == [
        "Empty",
        "Ongoing",
        "PrepareAbort",
        "CompleteAbort",
        "Empty",
        "INVALID_PRODUCER_EPOCH",
        "Ongoing",
        "PrepareCommit",
        "CompleteCommit",
    ]
    assert rows[1]["Partitions added"] == rows[6]["Partitions added"] == "line-0"
    (entry,) = broker.journal.entries(api="EndTxn", transactional_id="fenced", error="INVALID_PRODUCER_EPOCH")
    assert rows[5]["Why"] == f"rdkafka: EndTxn: {entry['why']}"
    assert page.page.locator("[data-is=State]").text_content() == "CompleteCommit"
    assert page.findings() == []


def shown_nodes(rows):
    return {int(row["Broker"]): (row["State"], int(row["Leads"]), int(row["In sync"])) for row in rows}


def test_cluster_agrees_with_the_admin_api_under_load_and_its_buttons_act(broker, page):
    broker.create_topic("held", partitions=6)
    admin = AdminClient(broker.client_config("confluent"))
    tab = page.open(broker, "cluster")

    def known():
        topics = topics_of(admin).values()
        partitions = [each for topic in topics for each in topic.partitions.values()]
        up = {each.id for each in admin.describe_cluster().result().nodes}
        return {
            node: (
                "up" if node in up else "stopped",
                sum(each.leader == node for each in partitions),
                sum(node in each.isrs for each in partitions),
            )
            for node in (1, 2, 3)
        }

    def second_is(state: str) -> bool:
        try:
            return known()[2][0] == state
        except KafkaException:  # librdkafka may send a request again to the broker that has stopped
            return False

    def fact(name: str) -> str:
        return tab.locator(f"[data-is='{name}']").text_content()

    with Load(producing(broker, "held", 6)):
        page.agrees("nodes", known, shown_nodes)
        tab.get_by_role("button", name="Stop broker 2").click()
        until(lambda: second_is("stopped"), "the broker is stopped")
        page.agrees("nodes", known, shown_nodes)
        before = broker.control.ask("GET", "/_admin/overview")["requests"]
        until(lambda: int(fact("Requests").replace(",", "")) >= before, "requests are counted")
        assert int(fact("Requests").replace(",", "")) <= broker.control.ask("GET", "/_admin/overview")["requests"]
    tab.get_by_role("button", name="Start broker 2").click()
    until(lambda: second_is("up"), "the broker is up")
    page.agrees("nodes", known, shown_nodes)
    assert tab.locator("[data-is=python]").text_content() == "broker.start_broker(2)"
    assert fact("Cluster id") == admin.describe_cluster().result().cluster_id
    topics = topics_of(admin).values()
    assert (int(fact("Topics")), int(fact("Partitions"))) == (len(topics), sum(len(each.partitions) for each in topics))
    until(lambda: fact("Not in sync") == "0", "the broker that was started has caught up")
    levels = {row["Feature"]: int(row["Level"]) for row in page.rows("features")}
    asking = KafkaAdminClient(**broker.client_config("kafka-python"))
    features = asking.describe_features()
    asking.close()
    assert {name: level for name, level in levels.items() if level} == {
        name: each["finalized"][1] for name, each in features.items() if "finalized" in each
    }
    assert page.findings() == []


def lacks(admin: AdminClient, topic: str) -> bool:
    """Whether the cluster has no such topic. A restore or reset may close the connection while a request is open."""
    try:
        return topic not in topics_of(admin)
    except KafkaException:
        return False


def test_clock_snapshots_forks_and_reset_by_their_buttons(page):
    with Broker() as broker:
        broker.create_topic("first")
        tab = page.open(broker, "cluster")
        tab.get_by_role("button", name="Freeze").click()
        tab.get_by_text("stands").wait_for()
        before = broker.clock.now()
        tab.get_by_role("button", name="+1 day").click()
        until(lambda: broker.clock.now() - before == timedelta(days=1), "a day has passed")
        wanted = broker.clock.now().strftime("%Y-%m-%d %H:%M:%S")
        until(lambda: tab.locator("[data-is=clock]").text_content().startswith(wanted), "the page shows it")
        tab.get_by_label("Name of the snapshot").fill("one")
        tab.get_by_role("button", name="Take a snapshot").click()
        assert [row["Snapshot"] for row in page.rows("snapshots")] == broker.snapshots() == ["one"]
        broker.create_topic("second")
        tab.get_by_label("Name of the fork").fill("other")
        tab.get_by_role("button", name="Fork the cluster").click()
        until(lambda: tab.locator("#clusters option").count() == 2, "the fork can be chosen")
        tab.get_by_role("button", name="Restore one").click()
        admin = AdminClient(broker.client_config("confluent"))
        until(lambda: lacks(admin, "second"), "the snapshot is restored")
        tab.locator("#clusters").select_option("other")
        tab.wait_for_url("**#/other/cluster")
        tab.goto(f"http://{broker.control.address}/ui#/other/topics")
        tab.get_by_role("link", name="second").wait_for()
        tab.goto(f"http://{broker.control.address}/ui#/default/cluster")
        assert tab.get_by_role("button", name="Reset").is_disabled()
        tab.get_by_label("drop all data and connections").check()
        tab.get_by_role("button", name="Reset").click()
        until(lambda: lacks(admin, "first"), "the cluster was reset")
        page.leave()


def test_token_is_asked_for_and_kept_in_the_tab(page, serve_with):
    address = serve_with("--control", "127.0.0.1:0", "--control-token", "sesame")
    tab = page.page
    tab.goto(f"http://{address}/ui")
    tab.get_by_role("textbox", name="Token").fill("sesame")
    tab.get_by_role("button", name="Use it").click()
    tab.locator("h1").wait_for()
    tab.goto(f"http://{address}/ui#/default/topics")
    tab.reload()
    tab.get_by_text("__consumer_offsets").wait_for()
    page.leave()
    refused = [line for line in page.console if "401" not in line]
    assert refused == []
    page.console.clear()  # the browser itself reports the 401 that the page asked the token for


def test_token_in_the_link_is_used_and_taken_out_of_the_address(page, serve_with):
    address = serve_with("--control", "127.0.0.1:0", "--control-token", "sesame")
    page.page.goto(f"http://{address}/ui#token=sesame")
    page.page.locator("h1").wait_for()
    assert "sesame" not in page.page.url
    page.leave()
    assert not any("sesame" in url for url in page.asked if "#" not in url)


WITHOUT_STREAM = {"schemas": "Schemas", "security": "Security"}  # are asked for again when they are looked at


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_view_fits_a_phone_in_light_and_dark_and_by_keyboard(broker, page, view, scheme):
    tab = page.page
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": 375, "height": 700})
    page.open(broker, view)
    if view in WITHOUT_STREAM:
        tab.locator("h1").get_by_text(WITHOUT_STREAM[view]).wait_for()
    else:
        until(lambda: tab.locator("#state").text_content() == "live", "it is live")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(20, 24, 29)") == (scheme == "dark")
    assert page.findings() == []
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    for _ in VIEWS:
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Cluster"
    tab.keyboard.press("Enter")
    tab.locator("h1").get_by_text("Cluster").wait_for()
