"""Faults of the registry: errors, delays, holds and cut connections, by route and subject, before and after."""

from __future__ import annotations

import threading

import pytest

from momus.control import ControlError
from momus.faults import once


def test_error_is_answered_once_for_its_route_and_subject_and_has_no_effect(broker, registry):
    words = {"route": "RegisterSchema", "subject": "orders-*", "trigger": once}
    fault = broker.faults.registry("error", status=503, code=50003, **words)
    assert registry.register("bills", '"int"')["id"] == 1
    refused = registry.register("orders-value", '"int"')
    assert refused == (503, 50003, f"the fault {fault.name} acts")
    assert registry.ask("GET", "/subjects") == ["bills"]
    assert registry.register("orders-value", '"int"')["id"] == 1
    assert (fault.calls, fault.hits) == (2, 1)


def test_error_after_the_effect_is_a_lost_answer(broker, registry):
    broker.faults.registry("error", "after", route="RegisterSchema", trigger=once)
    assert registry.register("s", '"int"')[0] == 500
    assert registry.ask("GET", "/subjects") == ["s"]


@pytest.mark.parametrize(("when", "subjects"), [("before", []), ("after", ["s"])])
def test_disconnect_answers_nothing(broker, registry, when, subjects):
    broker.faults.registry("disconnect", when, route="RegisterSchema", trigger=once)
    with pytest.raises(OSError, match=r"closed|reset|without response"):
        registry.register("s", '"int"')
    assert registry.ask("GET", "/subjects") == subjects


def test_hold_keeps_a_request_until_it_is_released(broker, registry):
    fault = broker.faults.registry("hold", route="RegisterSchema")
    found = []
    thread = threading.Thread(target=lambda: found.append(registry.register("s", '"int"')))
    thread.start()
    fault.wait_until_held(1)
    assert registry.ask("GET", "/subjects") == []
    assert fault.release() == 1
    thread.join(60)
    assert found[0]["id"] == 1
    fault.remove()


def test_delay_goes_by_the_clusters_clock(broker, registry):
    fault = broker.faults.registry("delay", route="ListSubjects", ms=3_600_000)
    found = []
    thread = threading.Thread(target=lambda: found.append(registry.ask("GET", "/subjects")))
    thread.start()
    fault.wait_until_held(1)
    broker.clock.advance(hours=2)
    thread.join(60)
    assert found == [[]]


def test_fault_of_the_registry_leaves_kafkas_requests_alone(broker, registry):
    fault = broker.faults.registry("error")
    broker.create_topic("t")
    broker.produce("t", "v")
    assert [row.value for row in broker.consume("t", 1)] == [b"v"]
    assert fault.calls == 0
    assert registry.ask("GET", "/subjects")[0] == 500


@pytest.mark.parametrize("words", [{"do": "explode"}, {"do": "error", "status": 200}, {"do": "error", "topic": "t"}])
def test_fault_that_cannot_be_is_refused(broker, words):
    with pytest.raises(ControlError):
        broker.faults.add(fault="registry", **words)
