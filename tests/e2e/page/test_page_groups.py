"""The page's groups of all types: members, offsets and lag, against Kafka's admin API under load; history and seek."""

from __future__ import annotations

import json

import pytest
from clientwork import until
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from core_requests import GROUP_RESOURCE, alter_request
from page_kit import Load, producing
from test_control import momus

from momus import Broker
from protocol.messages.share_group import ShareGroupHeartbeatRequest
from protocol.messages.streams_group import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
)

HOSTILE = '<img src=x onerror="alert(1)">/\u202e%'
TYPES = ("classic", "consumer")


@pytest.fixture(scope="module")
def broker():
    config = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1000}
    with Broker(brokers=2, config=config, journal_mb=4) as broker:
        yield broker


@pytest.fixture
def admin(broker):
    return AdminClient(broker.client_config("confluent"))


@pytest.fixture(params=TYPES)
def consumer(request, broker):
    topic = f"read-{request.param}"
    broker.create_topic(topic, partitions=3)
    settings = {"group.id": request.param, "group.protocol": request.param, "auto.offset.reset": "earliest"}
    made = Consumer({**broker.client_config("confluent"), **settings, "enable.auto.commit": False, "client.id": "bar"})
    made.subscribe([topic])
    until(lambda: made.poll(0.1) is not None or made.assignment(), "an assignment")
    yield request.param, topic, made
    made.close()


def committed(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {(each.topic, each.partition): each.offset for each in future.result().topic_partitions if each.offset >= 0}


def lags(admin: AdminClient, group: str) -> dict[tuple[str, int], tuple[int, int, int]]:
    """Partition -> committed, end, lag."""
    found = committed(admin, group)
    asked = {TopicPartition(*place): OffsetSpec.latest() for place in found}
    ends = {(p.topic, p.partition): f.result().offset for p, f in admin.list_offsets(asked).items()} if asked else {}
    return {place: (offset, ends[place], ends[place] - offset) for place, offset in found.items()}


def described_by_momus(broker: Broker, group: str):
    (found,) = json.loads(momus("group", "describe", group, "--json", "-b", broker.bootstrap_servers).stdout)
    return found


def number(text: str) -> int:
    return int(text.replace(",", ""))


def shown_offsets(rows):
    return {
        (row["Topic"], int(row["Partition"])): (int(row["Committed"]), int(row["End"]), number(row["Lag"]))
        for row in rows
    }


def test_group_agrees_with_the_admin_api_under_load(broker, admin, consumer, page):
    group, topic, reader = consumer
    produce = producing(broker, topic, 3)

    def step():
        produce()
        if reader.consume(30, 0.05):
            reader.commit(asynchronous=False)

    step()
    page.open(broker, f"groups/{group}")
    with Load(step):
        page.follows(
            "offsets",
            lambda: sum(committed(admin, group).values()),
            lambda rows: sum(int(row["Committed"]) for row in rows),
        )
    producing(broker, topic, 3)()
    page.agrees("offsets", lambda: lags(admin, group), shown_offsets)
    total = sum(lag for _, _, lag in lags(admin, group).values())
    assert total >= 3
    assert number(page.page.locator("[data-is=lag]").text_content()) == total

    def described():
        (future,) = admin.describe_consumer_groups([group]).values()
        found = future.result()
        rows = [
            (each.member_id, each.client_id, each.host, len(each.assignment.topic_partitions)) for each in found.members
        ]
        return found.state.name.replace("_", "").title(), rows

    state = page.page.locator("[data-is=State]").text_content()
    members = [(row["Member"], row["Client"], row["Host"], int(row["Has"])) for row in page.rows("members")]
    assert (state, members) == described()
    assert [row["State"] for row in page.rows("assignments")] == ["has"] * 3
    assert {row["Partition"] for row in page.rows("assignments")} == {f"{topic}-{index}" for index in range(3)}
    if group == "consumer":
        (row,) = page.rows("members")
        assert {each["Since epoch"] for each in page.rows("assignments")} <= {
            str(n) for n in range(1, int(row["Epoch"]) + 1)
        }
        (listed,) = described_by_momus(broker, group)["members"]
        assert (int(row["Epoch"]), int(row["Shall have"])) == (listed["epoch"], listed["target"])
    assert page.findings() == []


def test_groups_agree_with_the_admin_api_under_load(broker, admin, page, wires):
    broker.create_topic("many", partitions=2)
    producing(broker, "many", 2)()
    for name in (HOSTILE, "plain"):
        at = [TopicPartition("many", 0, 0)]
        (future,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(name, at)]).values()
        future.result()
    for asked in map(wires, broker.bootstrap_servers.split(",")):
        share = ShareGroupHeartbeatRequest(
            group_id="shared", member_id="m" * 22, member_epoch=0, subscribed_topic_names=["many"]
        )
        asked.call(share, 1)
        asked.call(alter_request(GROUP_RESOURCE, "shared", {"errors.deadletterqueue.topic.name": HOSTILE}), 1)
        topology = StreamsGroupHeartbeatRequestTopology(
            epoch=1, subtopologies=[StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=["many"])]
        )
        asked.call(
            StreamsGroupHeartbeatRequest(
                group_id="flow",
                member_id="s" * 22,
                member_epoch=0,
                endpoint_information_epoch=0,
                topology=topology,
                active_tasks=[],
                standby_tasks=[],
                warmup_tasks=[],
                process_id="p",
                rebalance_timeout_ms=1000,
            ),
            0,
        )
    page.open(broker, "groups")

    def listed():
        rows = json.loads(momus("group", "list", "--json", "-b", broker.bootstrap_servers).stdout)
        return {(row["group"], row["type"].lower(), row["state"]) for row in rows}

    page.agrees("groups", listed, lambda rows: {(row["Group"], row["Type"], row["State"]) for row in rows})
    assert {(kind, state) for _, kind, state in listed()} >= {
        ("share", "Stable"),
        ("streams", "Stable"),
        ("classic", "Empty"),
    }
    with Load(producing(broker, "many", 2)):
        page.follows(
            "groups",
            lambda: lags(admin, "plain")["many", 0][2],
            lambda rows: next(number(row["Lag"]) for row in rows if row["Group"] == "plain"),
        )
    page.agrees(
        "groups",
        lambda: {name: sum(lag for _, _, lag in lags(admin, name).values()) for name in (HOSTILE, "plain")},
        lambda rows: {row["Group"]: number(row["Lag"]) for row in rows if row["Group"] in (HOSTILE, "plain")},
    )
    assert page.page.locator("main img").count() == 0
    assert page.findings() == []
    for name in ("shared", "flow"):
        page.open(broker, f"groups/{name}")
        described = described_by_momus(broker, name)

        def of_group(rows):
            return [(row["Member"], int(row["Epoch"]), int(row["Has"])) for row in rows]

        page.agrees(
            "members",
            lambda described=described: [(m["member"], m["epoch"], m["has"]) for m in described["members"]],
            of_group,
        )
        assert page.page.locator("[data-is=State]").text_content() == described["state"]
        assert page.page.locator("[data-is='Group epoch']").text_content() == str(described["group_epoch"])
        queue = page.page.locator("[data-is='Dead-letter queue']")
        assert queue.count() == (name == "shared")
        assert page.page.locator("main img").count() == 0
        if name == "shared":
            assert HOSTILE in queue.text_content()
            assert "does not exist" in queue.text_content()
    page.page.get_by_role("link", name="Groups").click()
    page.page.get_by_role("link", name="onerror").click()
    page.page.locator("h1").get_by_text(HOSTILE).wait_for()


def test_history_tells_who_committed_and_why_another_was_refused(broker, page):
    broker.create_topic("told")
    settings = {"group.id": "told", "group.protocol": "consumer", "client.id": "bar"}
    consumer = Consumer({**broker.client_config("confluent"), **settings, "enable.auto.commit": False})
    consumer.subscribe(["told"])
    until(lambda: consumer.poll(0.1) is not None or consumer.assignment(), "an assignment")
    consumer.commit(offsets=[TopicPartition("told", 0, 0)], asynchronous=False)
    stranger = Consumer({**broker.client_config("confluent"), "group.id": "told", "client.id": "stranger"})
    with pytest.raises(KafkaException):
        stranger.commit(offsets=[TopicPartition("told", 0, 7)], asynchronous=False)
    page.open(broker, "groups/told")
    refused, accepted = page.rows("history")
    assert (accepted["Verdict"], accepted["Offset"], accepted["Client"]) == ("accepted", "0", "bar")
    assert accepted["Member"] == page.rows("members")[0]["Member"]
    assert (refused["Verdict"], refused["Offset"], refused["Client"]) == ("UNKNOWN_MEMBER_ID", "7", "stranger")
    (entry,) = broker.journal.entries(api="OffsetCommit", client_id="stranger")
    assert refused["Why"] == entry["why"] != ""
    broker.produce("told", "x")
    consumer.commit(offsets=[TopicPartition("told", 0, 1)], asynchronous=False)
    page.agrees("history", lambda: ["1", "7", "0"], lambda rows: [row["Offset"] for row in rows])
    consumer.close()
    stranger.close()


def test_seek_tells_first_where_offsets_would_go_and_then_moves_them(broker, admin, page):
    broker.create_topic("moved", partitions=2)
    for index in range(2):
        broker.produce("moved", *"abcdef", partition=index)
    at = [TopicPartition("moved", 0, 2), TopicPartition("moved", 1, 6)]
    (future,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("mover", at)]).values()
    future.result()
    tab = page.open(broker, "groups/mover")
    tab.locator("main select").last.select_option("shift")
    tab.get_by_label("Number").fill("-3")
    tab.get_by_role("button", name="Try").click()
    assert [(row["From"], row["To"], row["Remark"]) for row in page.rows("plan")] == [
        ("2", "0", "-1 is below the first offset 0"),
        ("6", "3", ""),
    ]
    assert committed(admin, "mover") == {("moved", 0): 2, ("moved", 1): 6}
    assert '"dry_run": True' in tab.locator("[data-is=python]").text_content()
    tab.get_by_role("button", name="Commit this").click()
    tab.get_by_text("Committed.", exact=True).wait_for()
    assert committed(admin, "mover") == {("moved", 0): 0, ("moved", 1): 3}
    page.agrees("offsets", lambda: lags(admin, "mover"), shown_offsets)


@pytest.mark.parametrize(
    ("word", "amount", "places"),
    [
        ("earliest", None, {0: 0, 1: 0}),
        ("latest", None, {0: 3, 1: 3}),
        ("offset", 2, {0: 2, 1: 2}),
        ("time", 0, {0: 0, 1: 0}),
    ],
)
def test_seek_of_a_topic_goes_where_its_word_says(broker, admin, word, amount, places):
    broker.create_topic(f"word-{word}", partitions=2)
    for index in range(2):
        broker.produce(f"word-{word}", *"abc", partition=index)
    body = {"to": word, "topic": f"word-{word}"} | ({} if amount is None else {"number": amount})
    broker.control.ask("POST", f"/_admin/groups/{word}/seek", body)
    assert committed(admin, word) == {(f"word-{word}", index): offset for index, offset in places.items()}
