"""Refusing a whole request puts the code where Apache Kafka puts it."""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

from cases import each_case
from golden_values import golden_value

from protocol.api import message_class, response_class
from protocol.codegen import codec
from protocol.declare import Message
from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest, FindCoordinatorRequest, error_response

_REFUSALS = Path(__file__).parent / "golden_refusals.txt"


def golden_refusals() -> dict[str, list[tuple[int, str, str]]]:
    """By request: version, kind of value, the response in hex."""
    found = defaultdict(list)
    for line in _REFUSALS.read_text().splitlines():
        if not line.startswith("#"):
            name, version, kind, answered = line.split(" ")
            found[name].append((int(version), kind, answered))
    return found


_ANSWERS = golden_refusals()


_SENTENCE = "This is not the correct coordinator."
# Kafka's own classes put the sentence of an error into these by themselves; ours do it where the handler gives one.
_EXPLAINED = {
    "AlterClientQuotasRequest",
    "AlterShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsRequest",
    "DescribeConfigsRequest",
    "DescribeQuorumRequest",
    "DescribeShareGroupOffsetsRequest",
    "FindCoordinatorRequest",
    "UnregisterControllerRequest",
}
_FETCH_BATCHES_SINCE = 4  # Kafka 3.9 answers null to older ones, which not all clients read, and Kafka 4 empty records
_UNORDERED = {"OffsetFetchRequest", "ProduceRequest", "WriteTxnMarkersRequest"}  # Kafka goes through hash maps


def _sort_lists(value: Any) -> Any:
    """The same with the messages of every list in the order of their text."""
    if isinstance(value, Message):
        for field in value.FIELDS:
            setattr(value, field.name, _sort_lists(getattr(value, field.name)))
    return sorted(map(_sort_lists, value), key=repr) if isinstance(value, list) else value


@each_case("name", _ANSWERS)
def test_refusal_of_a_request_equals_that_of_kafka(name: str) -> None:
    cls = message_class(name)
    refuse = import_module(cls.__module__).error_response
    message = _SENTENCE if name in _EXPLAINED else None
    for version, kind, answered in _ANSWERS[name]:
        response = refuse(golden_value(cls, version, kind), version, ErrorCode.NOT_COORDINATOR, message)
        wire = codec(response_class(cls.API_KEY), version)
        written = wire.encode(response)
        expected = bytes.fromhex(answered)
        if name == "FetchRequest" and version < _FETCH_BATCHES_SINCE:
            answer = wire.decode(expected)[0]
            for each in [each for topic in answer.responses for each in topic.partitions]:
                assert each.records is None
                each.records = b""
            expected = wire.encode(answer)
        if name in _UNORDERED:
            written, expected = [wire.encode(_sort_lists(wire.decode(each)[0])) for each in (written, expected)]
        assert written.hex() == expected.hex(), f"{name} v{version} {kind}"


def test_refusal_of_find_coordinator_names_no_node_and_says_why() -> None:
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    single = error_response(FindCoordinatorRequest(key="g"), 3, code)
    assert (single.error_code, single.node_id, single.port) == (code, -1, -1)
    assert single.error_message == "coordinator not available"
    several = error_response(FindCoordinatorRequest(coordinator_keys=["a", "b"]), 4, code, "why")
    found = [(each.key, each.error_code, each.error_message) for each in several.coordinators]
    assert found == [("a", code, "why"), ("b", code, "why")]


def test_refusal_of_api_versions_from_the_future_tells_its_own_range() -> None:
    response = error_response(ApiVersionsRequest(), 0, ErrorCode.UNSUPPORTED_VERSION)
    [own] = response.api_keys
    assert (own.api_key, own.min_version, own.max_version) == (18, 0, 5)
    assert error_response(ApiVersionsRequest(), 3, ErrorCode.INVALID_REQUEST).api_keys == []
