"""A wait of the control plane that was not met is answered with an error and what was seen, unless check=false."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from momus import Broker

PATHS = {
    "group": ("/groups/none/wait", {"state": "stable", "members": 1}, 408),
    "committed": ("/groups/none/wait-for-offsets", {"offsets": [{"topic": "t", "partition": 0, "offset": 1}]}, 408),
    "lag": ("/groups/none/wait-for-lag", {"lag": 0}, 408),
    "lag of a topic": ("/groups/none/wait-for-lag", {"lag": 0, "topic": "unmet"}, 408),
    "records": ("/topics/unmet/consume", {"least": 2}, 408),
    "fault": ("/faults/{fault}/wait", {"hits": 1, "timeout_ms": 0}, 408),
    "journal": ("/journal/verify", {"filters": {"api": "EndTxn"}}, 409),
}
WORDS = {
    "group": "group none is dead with 0 members, not stable with 1 member",
    "committed": "group none: t-0 is at none, not 1",
    "lag": "group none has committed no offset, and its members have no partition",
    "lag of a topic": "group none has committed no offset of unmet-0, unmet-1, and its members have none of them",
    "records": "unmet has 1 records, not 2",
    "fault": "{fault} (inject_error) was to have hits=1, but has calls=0, hits=0, held=0",
}
SEEN = {
    "group": "members",
    "committed": "offsets",
    "lag": "lag",
    "records": "records",
    "fault": "calls",
    "journal": "count",
}


@pytest.fixture(scope="module")
def fault(shared_broker: Broker) -> str:
    """The name of a fault that has not acted."""
    shared_broker.create_topics({"unmet": 2})
    ask(shared_broker, "/journal", {"bytes": 1 << 20})
    shared_broker.produce("unmet", "one")
    return shared_broker.faults.inject_error("EndTxn", "NOT_COORDINATOR").name


def ask(broker: Broker, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Status and answer."""
    connection = http.client.HTTPConnection(broker.control.address)
    connection.request("POST", broker.control.prefix + path, json.dumps(body))
    answer = connection.getresponse()
    told: dict[str, Any] = json.loads(answer.read())
    connection.close()
    return answer.status, told


@pytest.mark.parametrize("name", PATHS)
def test_wait_that_is_not_met_is_an_error_with_what_was_seen(shared_broker: Broker, fault: str, name: str):
    path, body, status = PATHS[name]
    path = path.format(fault=fault)
    code, told = ask(shared_broker, path, body)
    assert (code, told["met"], told["error"]) == (status, False, told["why"])
    assert told["why"].startswith(WORDS.get(name, "").format(fault=fault))
    assert told["why"]
    assert SEEN.get(name, "met") in told
    code, seen = ask(shared_broker, f"{path}?check=false", body)
    assert (code, seen | {"error": told["why"]}) == (200, told)  # a fault has an "error" of its own
    assert ask(shared_broker, f"{path}?check=perhaps", body)[0] == 400


def test_wait_that_is_met_has_no_why(shared_broker: Broker, fault: str):
    code, told = ask(shared_broker, "/topics/unmet/consume", {"least": 1})
    assert (code, told["met"], told["why"], len(told["records"])) == (200, True, "", 1)
    assert ask(shared_broker, "/groups/none/wait", {"state": "dead"})[1]["met"]
    assert ask(shared_broker, "/journal/verify", {"filters": {"api": "EndTxn"}, "times": 0})[1]["met"]
