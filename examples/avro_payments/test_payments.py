"""The balances: right whatever schemas, brokers, registry and members do."""

from __future__ import annotations

import json
import threading

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError
from conftest import PAYMENTS, SUMS
from payments import PAYMENT

COUNT = len(PAYMENTS)
FIELDS = json.loads(PAYMENT)["fields"]


def schema_with(*fields: dict) -> str:
    """The schema of payments, with other fields."""
    return json.dumps({**json.loads(PAYMENT), "fields": [*FIELDS, *fields]})


def test_payments_are_added_up_and_committed(broker, make_balances):
    worker = make_balances(broker)
    worker.work(COUNT)
    assert worker.balances() == SUMS
    assert broker.committed("balances") == {("payments", 0): COUNT}


def test_schema_is_asked_for_once(broker, make_payer, make_balances):
    payer = make_payer(broker)
    payer.pay(id="x", account="a", cents=1)
    payer.pay(id="y", account="a", cents=1)
    make_balances(broker).work(COUNT + 2)
    asked = [
        (entry["method"], entry["route"]) for entry in map(registry_request, broker.journal.entries(api="Registry"))
    ]
    assert [route for _, route in asked].count("RegisterSchema") == 1


def registry_request(entry) -> dict:
    return entry["request"]


def test_wider_schema_with_a_default_is_read_beside_the_older(broker, make_payer, make_balances):
    wider = make_payer(broker, schema=schema_with({"name": "note", "type": "string", "default": ""}))
    wider.pay(id="x", account="a", cents=5, note="tip")
    worker = make_balances(broker)
    worker.work(COUNT + 1)
    assert worker.balances() == {**SUMS, "a": SUMS["a"] + 5}


def test_schema_that_older_readers_cannot_read_is_refused_and_nothing_is_written(broker, make_payer):
    end = len(broker.consume("payments"))
    payer = make_payer(broker, schema=schema_with({"name": "currency", "type": "string"}))
    with pytest.raises(SchemaRegistryError, match="READER_FIELD_MISSING_DEFAULT_VALUE"):
        payer.pay(id="x", account="a", cents=5, currency="EUR")
    assert len(broker.consume("payments")) == end


def test_registry_that_fails_once_is_asked_again(broker, make_payer):
    failed = broker.faults.registry("error", route="RegisterSchema", status=503, trigger="once")
    make_payer(broker).pay(id="x", account="a", cents=5)
    assert failed.hits == 1
    assert len(broker.consume("payments")) == COUNT + 1


def test_what_is_no_avro_is_put_aside_and_holds_nothing_up(broker, make_payer, make_balances):
    broker.produce("payments", b"10 to a", partition=0)
    make_payer(broker).pay(id="x", account="a", cents=5)
    worker = make_balances(broker)
    worker.work(COUNT + 2)
    assert worker.balances() == {**SUMS, "a": SUMS["a"] + 5}
    (refused,) = broker.consume("payments-refused")
    assert refused.value == b"10 to a"


@pytest.mark.parametrize("when", ["before", "after"])
def test_connection_that_breaks_around_a_payment_leaves_it_there_once(broker, make_payer, make_balances, when):
    cut = broker.faults.disconnect_on("Produce", when=when, trigger="once")
    make_payer(broker).pay(id="x", account="b", cents=5)
    assert cut.hits == 1
    assert len(broker.consume("payments")) == COUNT + 1


def test_coordinator_that_still_loads_holds_a_commit_up_and_no_more(broker, make_balances):
    broker.faults.inject_error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", trigger="once")
    worker = make_balances(broker)
    worker.work(COUNT)
    assert worker.balances() == SUMS
    assert broker.committed("balances") == {("payments", 0): COUNT}


def test_worker_that_dies_before_its_commit_is_followed_by_one_that_adds_nothing_twice(broker, make_balances):
    held = broker.faults.hold("OffsetCommit", when="before", on_call=2)
    working = threading.Thread(target=make_balances(broker).work, args=(2,))
    working.start()
    held.wait_until_held()
    with broker.fork() as after:  # as it is at this moment, with the registry
        held.release()
        working.join()
        after.clock.advance(seconds=46)  # the member of that time is gone
        worker = make_balances(after)
        worker.work(COUNT - 1)
        assert worker.balances() == SUMS
        worker.close()


def test_schema_that_is_registered_in_a_fork_is_not_in_the_cluster_it_was_made_from(broker, make_payer):
    with broker.fork() as other:
        wider = schema_with({"name": "note", "type": "string", "default": ""})
        make_payer(other, schema=wider).pay(id="x", account="a", cents=5, note="")
        assert len(other.consume("_schemas")) == len(broker.consume("_schemas")) + 1


def test_offsets_that_expire_lead_to_deliveries_and_to_no_other_balance(broker, make_balances):
    first = make_balances(broker)
    first.work(COUNT)
    first.close()
    broker.clock.advance(days=8)
    assert broker.committed("balances") == {}
    second = make_balances(broker)
    second.work(COUNT)
    assert second.balances() == SUMS
