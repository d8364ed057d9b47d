"""What the page does: each act is done as the admin API then says, and its line of Python does the same again."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from clientwork import until
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource
from page_kit import topics_of

from momus import Broker
from protocol.messages.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)

HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def broker():
    with Broker(security="sasl_plaintext", users={"alice": "a"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def plain():
    with Broker() as broker:
        yield broker


def line(tab, kind: str = "python") -> str:
    return tab.locator(f"#calls [data-is={kind}]").text_content()


def test_topic_is_created_altered_and_deleted(plain, page):
    admin = AdminClient(plain.client_config("confluent"))
    tab = page.open(plain, "topics")
    tab.get_by_text("New topic", exact=True).click()
    tab.get_by_label("Topic name").fill("made")
    tab.get_by_label("How many partitions").fill("2")
    tab.get_by_label("Topic settings").fill("retention.ms=60000, cleanup.policy=compact")
    tab.get_by_role("button", name="Create the topic").click()
    tab.get_by_role("link", name="made").click()
    page.agrees("partitions", lambda: 2, len)
    assert line(tab) == (
        'broker.create_topic("made", partitions=2, config={"retention.ms": "60000", "cleanup.policy": "compact"})'
    )

    def settings() -> dict[str, str]:
        (answer,) = admin.describe_configs([ConfigResource("TOPIC", "made")]).values()
        return {
            name: each.value for name, each in answer.result().items() if name in ("retention.ms", "cleanup.policy")
        }

    assert settings() == {"retention.ms": "60000", "cleanup.policy": "compact"}
    tab.get_by_role("combobox", name="Setting", exact=True).fill("retention.ms")
    tab.get_by_label("Set to").fill("90000")
    tab.get_by_role("button", name="Change the setting").click()
    until(lambda: settings()["retention.ms"] == "90000", "the setting is changed")
    until(lambda: "90000" in line(tab), "the page shows the call")
    assert eval(line(tab), {"broker": plain}) == {"topic": "made", "partitions": 2}
    tab.get_by_label("Set to").fill("")
    tab.get_by_role("button", name="Change the setting").click()
    until(lambda: settings()["retention.ms"] == "604800000", "the setting is back at its default")
    tab.get_by_label("Partitions from now on").fill("4")
    tab.get_by_role("button", name="Add partitions").click()
    until(lambda: len(topics_of(admin, "made")["made"].partitions) == 4, "there are more partitions")
    page.agrees("partitions", lambda: 4, len)
    assert page.findings() == []
    assert tab.get_by_role("button", name="Delete the topic").is_disabled()
    tab.get_by_label("with all its records").check()
    tab.get_by_role("button", name="Delete the topic").click()
    until(lambda: "made" not in topics_of(admin), "the topic is deleted")


def test_several_messages_are_produced_at_once(plain, page):
    plain.create_topic("several", partitions=2)
    tab = page.open(plain, "topics/several")
    tab.get_by_label("What the text is").select_option("lines")
    tab.get_by_label("Value", exact=True).fill("one\ntwo\n")
    tab.get_by_role("button", name="Produce").click()
    tab.get_by_text("2 messages").wait_for()
    assert line(tab) == 'broker.produce("several", "one", "two")'
    assert line(tab, "java") == 'cluster.produce("several", "one", "two");'
    assert line(tab, "go") == 'cluster.Produce("several", "one", "two")'
    tab.get_by_label("What the text is").select_option("json")
    given = {"key": "k", "value": {"cups": 2}, "headers": [["to", "go"]], "partition": 1}
    tab.get_by_label("Value", exact=True).fill(json.dumps(given) + "\n" + json.dumps({"value": None, "key": "k"}))
    tab.get_by_role("button", name="Produce").click()
    until(lambda: len(plain.consume("several")) == 4, "all are there")
    (record,) = [each for each in plain.consume("several") if each.value == b'{"cups":2}']
    assert (record.key, record.partition, list(record.headers)) == (b"k", 1, [("to", b"go")])


def test_group_is_deleted_and_a_share_group_seeks_after_it_told_where(plain, page, wires):
    plain.create_topic("read", partitions=2)
    plain.produce("read", *"abc", partition=0)
    admin = AdminClient(plain.client_config("confluent"))
    at = [TopicPartition("read", 0, 1)]
    (future,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("gone", at)]).values()
    future.result()
    tab = page.open(plain, "groups/gone")
    tab.get_by_label("with its offsets").check()
    tab.get_by_role("button", name="Delete the group").click()
    until(lambda: plain.committed("gone") == {}, "the group is deleted")
    places = [AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=0) for index in range(2)]
    topics = [AlterShareGroupOffsetsRequestTopic(topic_name="read", partitions=places)]
    wires(plain.bootstrap_servers).call(AlterShareGroupOffsetsRequest(group_id="sharers", topics=topics), 0)
    tab = page.open(plain, "groups/sharers")
    tab.locator("main select").last.select_option("latest")
    tab.get_by_role("button", name="Try").click()
    assert [(row["From"], row["To"]) for row in page.rows("plan")] == [("0", "3"), ("0", "0")]
    page.agrees("offsets", lambda: ["0", "0"], lambda rows: [row["Start"] for row in rows])
    tab.get_by_role("button", name="Commit this").click()
    page.agrees("offsets", lambda: ["3", "0"], lambda rows: [row["Start"] for row in rows])


def test_users_acls_and_quotas_are_lists_and_forms(broker, page):
    tab = page.open(broker, "security")
    assert [row["User"] for row in page.rows("users")] == ["alice"]
    tab.get_by_label("User name").fill(HOSTILE[:4] + "bob")
    tab.get_by_role("button", name="Add the user").click()
    tab.locator("#calls .bad").wait_for()
    tab.get_by_label("User name").fill("bob")
    tab.get_by_label("Its password").fill("b")
    tab.get_by_role("button", name="Add the user").click()
    until(lambda: broker.users.list() == ["alice", "bob"], "bob is added")
    page.agrees("users", lambda: ["alice", "bob"], lambda rows: [row["User"] for row in rows])
    assert line(tab) == 'broker.users.add("bob", "b")'
    tab.get_by_role("button", name="Remove user bob").click()
    page.agrees("users", lambda: ["alice"], lambda rows: [row["User"] for row in rows])
    tab.get_by_label("Named").fill("billing")
    tab.get_by_label("At most").fill("1000")
    tab.get_by_role("button", name="Set the quota").click()
    page.agrees(
        "quotas",
        lambda: [("client_id billing", "producer_byte_rate", "1000")],
        lambda rows: [(row["Of"], row["Rate"], row["Value"]) for row in rows],
    )
    assert line(tab) == 'broker.load({"quotas": [{"client_id": "billing", "producer_byte_rate": 1000}]})'
    tab.get_by_role("button", name="Remove producer_byte_rate").click()
    until(lambda: broker.control.ask("GET", "/_admin/quotas") == [], "the quota is removed")
    assert page.findings() == []
    page.console[:] = [each for each in page.console if "400" not in each]


def test_acls_are_made_and_removed(page):
    authorizer = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    with Broker(security="sasl_plaintext", users={"alice": "a"}, config=authorizer) as broker:
        before = broker.acls.list()
        tab = page.open(broker, "security")
        tab.get_by_label("Principal").fill("User:carol")
        tab.get_by_label("Resource name").fill(HOSTILE)
        tab.get_by_role("button", name="Add the ACL").click()
        until(lambda: len(broker.acls.list()) == len(before) + 1, "the ACL is made")
        shown = page.rows("acls")
        made = [each for each in broker.acls.list() if each["principal"] == "User:carol"]
        assert [
            {key.lower(): row[key] for key in row if key != "Do"} for row in shown if row["Principal"] == "User:carol"
        ] == made
        assert line(tab) == f'broker.acls.allow("carol", "read", topic={json.dumps(HOSTILE)})'
        tab.get_by_role("button", name="Remove the ACL of User:carol for read").click()
        until(lambda: broker.acls.list() == before, "the ACL is removed")
        page.leave()


@pytest.mark.parametrize(
    ("trigger", "amount", "expected"),
    [
        ("times", "2", {"times": 2}),
        ("on_call", "3", {"on_call": 3}),
        ("with_probability", "0.5", {"with_probability": 0.5}),
    ],
)
def test_fault_takes_each_trigger_and_its_line_makes_the_same(plain, page, trigger, amount, expected):
    tab = page.open(plain, "faults")
    tab.get_by_label("API", exact=True).fill("OffsetCommit")
    tab.locator("datalist option[value=OffsetCommit]").wait_for(state="attached")  # the names come after the form
    tab.locator("datalist option[value=NOT_COORDINATOR]").first.wait_for(state="attached")
    tab.get_by_label("Trigger").select_option(trigger)
    tab.get_by_label(
        "0 to 1" if trigger == "with_probability" else {"times": "how many", "on_call": "which one"}[trigger]
    ).fill(amount)
    tab.get_by_label("Name", exact=True).fill(f"mine-{trigger}")
    tab.get_by_role("button", name="Set", exact=True).click()
    page.rows("faults")
    (fault,) = plain.faults.list()
    assert expected.items() <= fault["trigger"].items()
    assert line(tab).startswith("broker.faults.inject_error(")
    plain.faults.clear()
    made = eval(line(tab), {"broker": plain})
    assert {**made.state(), "trigger": 0} == {**fault, "trigger": 0}
    plain.faults.clear()


def test_page_without_the_token_has_no_buttons(page):
    command = [sys.executable, "-m", "momus", "serve", "--listen", "127.0.0.1:0", "--flush", "memory", "--ui"]
    with subprocess.Popen([*command, "--control-token", "secret"], stdout=subprocess.PIPE, text=True) as process:
        try:
            link = next(line for line in process.stdout if line.startswith("momus ui ")).removeprefix("momus ui ")
            tab = page.page
            tab.goto(f"{link.strip()}#/default/journal")
            tab.get_by_role("textbox", name="Token").wait_for()
            assert tab.locator("main button:visible").count() == 0
            tab.get_by_role("textbox", name="Token").fill("secret")
            tab.get_by_role("button", name="Use it").click()
            tab.get_by_role("button", name="Keep the last 16 MB").wait_for()
            page.leave()
        finally:
            process.terminate()
    page.console[:] = [each for each in page.console if "401" not in each]
