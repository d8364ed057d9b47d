"""kafka-topics over stopped virtual brokers: what is under-replicated, below the minimum, without a leader."""

from __future__ import annotations

import pytest

from momus import Broker

# One worker: one JVM runs all the tools.
pytestmark = pytest.mark.xdist_group("java")

TOPICS = "org.apache.kafka.tools.TopicCommand"
LISTINGS = {
    "--under-replicated-partitions": {"two", "three"},
    "--under-min-isr-partitions": {"three", "two"},
    "--at-min-isr-partitions": {"ok"},
    "--unavailable-partitions": {"two"},
}


@pytest.fixture(scope="module")
def failed():
    with Broker(brokers=3) as broker:
        yield broker


def test_listings_of_kafka_topics_tell_what_the_stopped_brokers_left(toolbox, failed):
    def run(*words: str) -> str:
        code, printed = toolbox.run(TOPICS, "--bootstrap-server", failed.bootstrap_servers.split(",")[0], *words)
        assert code == 0, printed
        return printed

    for name, replicas, least in (("ok", "1", 1), ("two", "2:3", 2), ("three", "1:2:3", 2)):
        run("--create", "--topic", name, "--replica-assignment", replicas, "--config", f"min.insync.replicas={least}")
    failed.stop_broker(3)
    failed.stop_broker(2)
    for listing, names in LISTINGS.items():
        shown = run("--describe", listing)
        told = {line.split("\t")[1].removeprefix("Topic: ") for line in shown.splitlines() if "Partition: " in line}
        assert told - {"__consumer_offsets"} == names, (listing, shown)
    assert "Leader: none" in run("--describe", "--topic", "two")
