"""The page's topics: sizes, partitions, settings and messages, against what Kafka's admin API answers, under load."""

from __future__ import annotations

import pytest
from clientwork import until
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec
from page_kit import Load, producing, topics_of
from test_page_schemas import FakeRegistry, framed, write

from momus import Broker

HOSTILE = '<script>document.title="broken"</script><img src=x onerror=alert(1)>'
RTL = "\u202eabc\u05d0\u05d1"


@pytest.fixture(scope="module")
def broker():
    with Broker(brokers=3, config={"default.replication.factor": 3, "group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


def admin_of(broker: Broker) -> AdminClient:
    return AdminClient(broker.client_config("confluent"))


def offsets(admin: AdminClient, topic: str, partitions: int, spec: OffsetSpec) -> list[int]:
    asked = {TopicPartition(topic, index): spec for index in range(partitions)}
    return [answer.result().offset for answer in admin.list_offsets(asked).values()]


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_topics_agree_with_the_admin_api_under_load(broker, page):
    broker.create_topic("load", partitions=4)
    admin = admin_of(broker)
    page.open(broker, "topics")

    def records() -> int:
        ends = offsets(admin, "load", 4, OffsetSpec.latest())
        return sum(ends) - sum(offsets(admin, "load", 4, OffsetSpec.earliest()))

    def shown(rows) -> int:
        return next((number(row["Records"]) for row in rows if row["Topic"] == "load"), -1)

    with Load(producing(broker, "load", 4)):
        page.follows("topics", records, shown)
    page.agrees("topics", records, shown)

    def described():
        topics = topics_of(admin).values()
        return sorted((each.topic, len(each.partitions), len(each.partitions[0].replicas), 0) for each in topics)

    def row_of(row):
        name = row["Topic"].removesuffix(" internal")
        return name, number(row["Partitions"]), number(row["Replicas"]), number(row["Not in sync"])

    page.agrees("topics", described, lambda rows: sorted(map(row_of, rows)))
    broker.stop_broker(2)
    page.agrees(
        "topics",
        lambda: sum(len(each.isrs) < 3 for each in topics_of(admin, "load")["load"].partitions.values()),
        lambda rows: next(number(row["Not in sync"]) for row in rows if row["Topic"] == "load"),
    )
    broker.start_broker(2)


def test_topic_agrees_with_the_admin_api_under_load(broker, page):
    broker.create_topic("one", partitions=3, config={"retention.ms": "600000"})
    admin = admin_of(broker)
    page.open(broker, "topics/one")
    with Load(producing(broker, "one", 3)):
        page.follows(
            "partitions",
            lambda: sum(offsets(admin, "one", 3, OffsetSpec.latest())),
            lambda rows: sum(int(row["End"]) for row in rows),
        )

    def described():
        partitions = topics_of(admin, "one")["one"].partitions
        first, end = (offsets(admin, "one", 3, spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest()))
        return [
            (index, each.leader, sorted(each.replicas), sorted(each.isrs), first[index], end[index])
            for index, each in sorted(partitions.items())
        ]

    def ids(text: str) -> list[int]:
        return sorted(map(int, text.split(", ")))

    def shown(rows):
        return [
            (
                int(row["Partition"]),
                int(row["Leader"]),
                ids(row["Replicas"]),
                ids(row["In sync"]),
                int(row["First offset"]),
                int(row["End"]),
            )
            for row in rows
        ]

    page.agrees("partitions", described, shown)
    (answer,) = admin.describe_configs([ConfigResource("TOPIC", "one")]).values()
    settings = {row["Setting"]: (row["Value"], row["Set where"]) for row in page.rows("configs")}
    assert {name: value for name, (value, _) in settings.items()} == {
        name: each.value or "" for name, each in answer.result().items()
    }
    assert {name for name, (_, source) in settings.items() if source == "topic"} == {"retention.ms"}
    assert page.findings() == []


def test_messages_show_hostile_texts_as_text_and_say_how_long_they_were(broker, page):
    broker.create_topic("hostile")
    producer = Producer({**broker.client_config("confluent"), "message.max.bytes": 4_000_000})
    broker.control.ask("GET", "/_admin/topics/hostile")
    producer.produce("hostile", HOSTILE, HOSTILE, headers=[(HOSTILE, HOSTILE.encode()), (RTL, b"\xff\x00")])
    producer.produce("hostile", '{"cups": [1, 2]}', RTL)
    producer.produce("hostile", "v", b"k" * 1_000_000)
    producer.produce("hostile", b"\xff\xfe\x00", None)
    assert producer.flush(30) == 0
    page.open(broker, "topics/hostile")
    rows = page.rows("messages")
    assert [row["Offset"] for row in rows] == ["0", "1", "2", "3"]
    assert (rows[0]["Key"], rows[0]["Value"]) == (HOSTILE, HOSTILE)
    assert rows[0]["Headers"] == f"{HOSTILE} {HOSTILE}{RTL} ff00"
    assert (rows[1]["Key"], rows[1]["Value"]) == (RTL, '{\n "cups": [\n  1,\n  2\n ]\n}')
    assert rows[2]["Key"] == "k" * 2000 + "cut; 1,000,000 bytes in all"
    assert (rows[3]["Key"], rows[3]["Value"]) == ("null", "fffe00")
    assert page.page.locator("main script, main img").count() == 0
    assert page.page.title() == "hostile · Topics · momus"
    assert page.findings() == []


def test_messages_of_a_schema_registry_are_decoded_or_say_why_not(page):
    registry = FakeRegistry()
    registry.add(7, '"string"')
    with Broker(config={"schema.registry.url": registry.url}) as broker:
        write(broker, framed(7, b"\x02<"), framed(8, b""))
        page.open(broker, "topics/t")
        found, absent = (row["Value"] for row in page.rows("messages"))
        assert found == '"<"avro, schema 7'
        assert absent == "0000000008schema 8: the registry answers 404 to GET /schemas/ids/8"
        assert page.findings() == []
        page.leave()
    registry.close()


def test_messages_of_transactions_are_coloured_by_their_outcome(broker, page):
    broker.create_topic("paid")
    for name, outcome in (("a", "commit"), ("b", "abort"), ("c", None)):
        producer = Producer({**broker.client_config("confluent"), "transactional.id": name})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("paid", name, name)
        producer.flush(30)
        if outcome:
            getattr(producer, f"{outcome}_transaction")()
    page.open(broker, "topics/paid")
    assert [(row["Key"], row["Transaction"]) for row in page.rows("messages")] == [("a", "committed"), ("c", "open")]
    page.page.get_by_label("aborted ones and markers").check()
    page.page.get_by_role("button", name="Read").click()
    until(lambda: len(page.rows("messages")) == 5, "markers and aborted ones")
    assert [row["Transaction"] for row in page.rows("messages")] == [
        "committed",
        "commit marker",
        "aborted",
        "abort marker",
        "open",
    ]
    producer.abort_transaction()


def test_produced_message_is_what_a_consumer_reads_and_its_call_is_shown(broker, page):
    broker.create_topic("typed")
    tab = page.open(broker, "topics/typed")
    tab.get_by_label("Key").fill("table 4")
    tab.get_by_label("Headers").fill("to=go")
    tab.get_by_label("Value").fill("one 'coffee'")
    tab.get_by_role("button", name="Produce").click()
    (row,) = page.rows("messages")
    assert (row["Key"], row["Value"], row["Headers"]) == ("table 4", "one 'coffee'", "to go")
    consumer = Consumer({**broker.client_config("confluent"), "group.id": "typed", "auto.offset.reset": "earliest"})
    consumer.subscribe(["typed"])
    message = consumer.poll(30)
    assert (message.key(), message.value(), message.headers()) == (b"table 4", b"one 'coffee'", [("to", b"go")])
    consumer.close()
    line = tab.locator("[data-is=python]").text_content()
    curl = tab.locator("[data-is=curl]").text_content()
    assert curl.startswith(
        f"curl -X POST 'http://{broker.control.address}/_admin/clusters/default/topics/typed/records'"
    )
    eval(line.replace("[[", "[(").replace("]]", ")]"), {"broker": broker})
    assert [record.value for record in broker.consume("typed", 2)] == [b"one 'coffee'"] * 2


def test_ten_thousand_topics_are_filtered_by_the_server_and_few_rows_are_kept(page):
    with Broker(flush="memory") as broker:
        admin = admin_of(broker)
        from confluent_kafka.admin import NewTopic

        for start in range(0, 10_000, 500):
            made = admin.create_topics([NewTopic(f"topic-{n:05}", 1) for n in range(start, start + 500)])
            for future in made.values():
                future.result(60)
        tab = page.open(broker, "topics")
        tab.get_by_text("10,001 found").wait_for()
        assert len(page.rows("topics")) <= 200
        tab.locator(".scroll").evaluate("box => { box.scrollTop = box.scrollHeight; }")
        until(lambda: page.rows("topics")[-1]["Topic"] == "topic-09999", "the last topic")
        assert len(page.rows("topics")) <= 200
        tab.keyboard.press("/")
        tab.keyboard.type("C-0012")
        tab.get_by_text("10 found").wait_for()
        assert [row["Topic"] for row in page.rows("topics")] == [f"topic-0012{n}" for n in range(10)]
        assert page.findings() == []
        page.leave()
