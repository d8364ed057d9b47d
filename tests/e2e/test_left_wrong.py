"""What a run has left wrong, as GET /left-wrong says: open transactions, commits of what was not there or not read."""

from __future__ import annotations

import pytest
from small_client import Client, Consumer, Producer

from momus import Broker


@pytest.fixture
def broker():
    with Broker(flush="memory", journal_mb=4) as made:
        yield made


@pytest.fixture
def client(broker):
    made = Client(broker.bootstrap_servers)
    yield made
    made.close()


def left(broker):
    return broker._ask("GET", "/left-wrong")


@pytest.fixture
def billing(broker, client):
    """A member that was sent the first two of the orders."""
    broker.produce("orders", "a", "b")
    consumer = Consumer(client, "billing", "orders")
    consumer.join()
    while not consumer.poll(2):
        pass
    return consumer


def test_commit_of_what_was_read_is_right(broker, billing):
    billing.commit(2)
    assert left(broker) == []


def test_commit_above_what_was_sent_is_told(broker, billing):
    broker.produce("orders", "c", "d")
    billing.commit(3)
    why = "group billing has committed 3 of orders-0, and its members were sent the records below 2"
    assert left(broker) == [why]
    billing.poll(4)  # it is sent them after all
    assert left(broker) == []


def test_what_was_sent_counts_over_a_restart_that_is_made(broker, billing):
    broker.faults.make_event("restart", "Heartbeat", on_call=1)
    billing.heartbeat()
    broker.produce("orders", "c", "d")
    billing.commit(2)
    assert left(broker) == []
    billing.commit(3)
    why = "group billing has committed 3 of orders-0, and its members were sent the records below 2"
    assert left(broker) == [why]


def test_journal_that_began_after_the_reading_tells_no_commit(tmp_path):
    with Broker(data_dir=tmp_path, flush="os", journal_mb=4) as broker:
        broker.produce("orders", "a", "b")
        billing = Consumer(Client(broker.bootstrap_servers), "billing", "orders")
        billing.join()
        billing.poll(2)
        broker.restart()
        billing.commit(2)
        billing.client.close()
        assert left(broker) == []


def test_offsets_that_another_request_tells_may_be_committed(broker, billing, client):
    broker.produce("orders", "c", "d")
    other = Consumer(client, "other", "orders")
    other.join()
    other.position = 3
    other.poll(1)
    billing.commit(3)  # the same client, for all that is known
    assert left(broker) == []


def test_commit_beyond_the_end_is_told(broker, billing):
    billing.commit(9)
    assert "group billing has committed 9 of orders-0, which ends at 2" in left(broker)


def test_open_transaction_is_told_until_it_ends(broker, client):
    broker.create_topic("bills", partitions=1)
    producer = Producer(client, "bills", "copier")
    producer.begin()
    producer.send(["a"])
    assert left(broker) == ["transaction copier was left Ongoing, with bills-0"]
    producer.end(commits=True)
    assert left(broker) == []


def test_journal_that_has_dropped_requests_tells_no_commit(broker, billing):
    broker.produce("orders", "c", "d")
    broker._ask("POST", "/journal", {"bytes": 65_536})
    for _ in range(2000):
        billing.heartbeat()
    billing.commit(3)
    assert left(broker) == []
