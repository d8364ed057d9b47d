"""What the page asks a proxy for: messages, tails and transactions of the cluster, and sentences for all else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from momus import Broker
from momus.control import ControlError, NotOnUpstreamError

LIMIT_S = 60
# what a page looks at -> what stands in the place of its words
LOOKS = {"topic": "pages", "group": "readers", "transactional_id": "pages", "subject": "s", "name": "n", "number": "1"}
OF_THE_CLUSTER = {
    "/groups",
    "/groups/{group}",
    "/groups/{group}/details",
    "/groups/{group}/offsets",
    "/overview",
    "/quotas",
    "/topics",
    "/topics/{topic}",
    "/topics/{topic}/messages",
    "/topics/{topic}/tail",
    "/transactions",
    "/transactions/{transactional_id}",
}
OF_THE_PROXY = {
    "",
    "/brokers",
    "/clock",
    "/faults",
    "/faults/kinds",
    "/faults/{name}",
    "/faults/{name}/held",
    "/journal",
    "/journal/entries/{number}",
    "/journal/last",
    "/journal/requests",
    "/journal/tail",
    "/security",
    "/lagging",
    "/snapshots",
    "/timeline",
    "/verify",
    "/words",
}


@pytest.fixture(scope="module")
def filled(upstream: Broker, proxy: Broker) -> Iterator[Any]:
    """The control plane of the proxy; in the cluster is a topic with transactions: committed, aborted and open."""
    upstream.create_topic("pages")
    proxy.produce("pages", "plain")
    for value, end in (("committed", "commit"), ("aborted", "abort"), ("later", "commit"), ("open", "")):
        producer = Producer({"bootstrap.servers": proxy.bootstrap_servers, "transactional.id": "pages"})
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        producer.produce("pages", value, headers={"h": value})
        producer.flush(LIMIT_S)
        if end:
            getattr(producer, f"{end}_transaction")(LIMIT_S)
    yield proxy.control
    producer.abort_transaction(LIMIT_S)


def told(answer: Any) -> list[tuple[str, str]]:
    return [((row["value"] or {}).get("text", ""), row["outcome"]) for row in answer["messages"]]


def test_messages_are_shown_with_the_outcome_of_their_transactions(filled):
    answer = filled.ask("GET", "/_admin/topics/pages/messages")
    assert told(answer) == [("plain", ""), ("committed", "committed"), ("later", "committed"), ("open", "open")]
    assert answer["messages"][1]["headers"][0][1]["text"] == "committed"
    assert (answer["from"], answer["start"], answer["end"]) == (0, 0, 8)
    every = filled.ask("GET", "/_admin/topics/pages/messages?aborted=yes&offset=3&limit=2")
    assert [outcome for _, outcome in told(every)] == ["aborted", "abort marker"]
    assert every["next_offset"] == 5


def test_messages_of_no_topic_are_refused(filled):
    with pytest.raises(ControlError, match="no such partition: pages-7"):
        filled.ask("GET", "/_admin/topics/pages/messages?partition=7")
    with pytest.raises(ControlError, match="no such topic: nothing"):
        filled.ask("GET", "/_admin/topics/nothing/messages")


def test_a_tail_goes_on_where_it_was_and_takes_what_fits(filled, proxy):
    first = filled.ask("GET", "/_admin/topics/pages/tail?value=a")
    assert told(first) == [("plain", ""), ("later", "committed")]
    proxy.produce("pages", "a new one", "other")
    second = filled.ask("GET", first["next"])
    assert told(second) == [("a new one", "")]
    proxy.produce("pages", "a last one")
    third = filled.ask("GET", second["next"])
    assert told(third) == [("a last one", "")]
    assert told(filled.ask("GET", third["next"])) == []


def test_transactions_are_those_of_all_coordinators_with_what_the_journal_saw(filled):
    (row,) = filled.ask("GET", "/_admin/transactions?filter=pages")["transactions"]
    assert (row["state"], row["partitions"]) == ("Ongoing", ["pages-0"])
    assert row["producer_epoch"] >= 0
    shown = filled.ask("GET", "/_admin/transactions/pages")
    assert {name: shown[name] for name in row} == row
    assert [each["what"] for each in shown["events"] if "EndTxn" in each["what"]] == [
        "EndTxn (commit)",
        "EndTxn (abort)",
        "EndTxn (commit)",
    ]
    assert filled.ask("GET", "/_admin/transactions/nothing")["state"] == "Dead"


def test_every_look_at_a_proxy_is_answered_by_it_or_refused_with_a_sentence(filled):
    filled.ask("POST", "/_admin/faults", {"fault": "hold", "api": "Heartbeat", "name": "n"})
    described: Any = filled.ask("GET", "/openapi.json")
    begin, answered, sentences, others = "/_admin/clusters/{cluster}", [], [], []
    for path, methods in described["paths"].items():
        if not path.startswith(begin) or "get" not in methods or path.endswith(("/events", "/metrics")):
            continue
        shown = path.removeprefix(begin)
        for word, value in LOOKS.items():
            shown = shown.replace(f"{{{word}}}", value)
        try:
            filled.ask("GET", f"/_admin/clusters/default{shown}")
            answered.append(path.removeprefix(begin))
        except NotOnUpstreamError as error:
            sentences.append(str(error))
        except ControlError as error:
            others.append(str(error))
    filled.ask("DELETE", "/_admin/faults/n")
    assert [each for each in sentences if not each.startswith("this is a proxy: ")] == []
    assert sentences
    assert others == ["the cluster default is not recorded"]
    assert set(answered) == OF_THE_CLUSTER | OF_THE_PROXY
