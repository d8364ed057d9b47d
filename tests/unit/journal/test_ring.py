"""The journal of a whole broker: what it keeps of requests and replies, and what it shows of them."""

from __future__ import annotations

from typing import Any

import pytest
from cases import each_case
from core_broker import Client, World, frame, make_topic
from core_requests import commit_request, fetch_request, produce_request

from broker.faults.errors import FaultError
from broker.journal.reading import Entry, check_filters, describe, entries, judged, topic_names
from broker.journal.ring import FRAME_BYTES, MOST_NOTES, Ring
from broker.journal.sessions import Sessions
from protocol.codegen import codec
from protocol.messages.cluster import ApiVersionsRequest
from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.delegation_tokens import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from protocol.messages.sasl import SaslAuthenticateRequest
from protocol.messages.scram import AlterUserScramCredentialsRequest, ScramCredentialUpsertion


class Bench:
    """A broker whose journal is on, and a client."""

    def __init__(self, limit_bytes: int = 1 << 20, *, shortcuts: bool = True) -> None:
        self.world = World("os", shortcuts=shortcuts)
        self.topic_id = make_topic(Client(self.world), "t", 2)
        self.world.broker.keep_journal(limit_bytes)
        self.client = Client(self.world)

    @property
    def ring(self) -> Ring:
        ring = self.world.broker.clients.journal
        assert isinstance(ring, Ring)
        return ring

    def commit(self, offset: int, group: str = "g") -> None:
        self.client.send(commit_request(group, {0: offset}), 8)

    def judged(self, **filters: str) -> list[tuple[Entry, bool | None]]:
        self.world.run()
        name_of = topic_names(self.ring, self.world.broker.metadata.topics_by_id)
        kept, sessions = entries(self.ring), Sessions(name_of)
        for entry in kept:
            sessions.add(entry)
        return list(judged(kept, filters, name_of, session_topics=sessions.topics_of))[::-1]

    def shown(self, **filters: str) -> list[dict[str, Any]]:
        return [describe(entry, self.ring) for entry, is_fit in self.judged(**filters) if is_fit]


@pytest.mark.parametrize("shortcuts", [True, False])
def test_journal_shows_each_request_with_its_reply(shortcuts):
    bench = Bench(shortcuts=shortcuts)
    for offset in range(5):
        bench.commit(offset)
    shown = bench.shown()
    assert len({each["number"] for each in shown}) == 5
    assert [each["request"]["topics"][0]["partitions"][0]["committed_offset"] for each in shown] == list(range(5))
    last = shown[-1]
    assert (last["api"], last["version"], last["client_id"], last["errors"]) == ("OffsetCommit", 8, "client", [])
    assert last["response"]["topics"][0]["partitions"][0] == {"partition_index": 0, "error_code": 0}
    assert last["connection"] == "127.0.0.1:50000"
    assert (last["broker"], last["listener"]) == (1, "PLAINTEXT")


def test_request_without_a_reply_is_shown_and_the_next_is_paired_right():
    bench = Bench()
    bench.client.send(produce_request("t", 0, b"a", acks=0), 9)
    bench.commit(1)
    shown = bench.shown()
    assert [each["api"] for each in shown] == ["Produce", "OffsetCommit"]
    assert shown[0]["response"] is None
    assert shown[0]["latency_ms"] is None
    assert shown[1]["response"]["topics"]


def test_request_that_waits_is_shown_without_a_reply_and_then_with_its_latency():
    bench = Bench()
    bench.client.send(fetch_request("t", 0, 0, max_wait_ms=500), 12)
    (waiting,) = bench.shown()
    assert waiting["response"] is None
    bench.world.advance(500)
    (answered,) = bench.shown()
    assert answered["latency_ms"] == 500
    assert answered["bytes_out"] > 0


def test_large_frames_keep_their_first_bytes_and_their_size():
    bench = Bench()
    bench.client.call(produce_request("t", 0, b"x" * 50_000), 9)
    bench.client.call(fetch_request("t", 0, 0), 12)
    produce, fetch = bench.shown()
    assert produce["bytes_in"] > 50_000
    assert produce["request"] is None
    assert produce["client_id"] == "client"
    assert fetch["bytes_out"] > 50_000
    assert fetch["response"] is None
    assert bench.ring.kept_bytes < 3 * FRAME_BYTES


def test_ring_drops_the_oldest_and_counts_them():
    bench = Bench(1 << 13)
    for offset in range(200):
        bench.commit(offset)
        bench.world.run()
    shown = bench.shown()
    assert bench.ring.kept_bytes <= 1 << 13
    assert 0 < len(shown) < 200
    assert shown[-1]["correlation_id"] == 200
    assert bench.ring.dropped
    assert all(each["response"] is not None for each in shown)


def test_reply_whose_request_was_dropped_is_left_out():
    bench = Bench()
    bench.client.send(fetch_request("t", 0, 0, max_wait_ms=500), 12)
    bench.world.run()
    bench.ring.clear()
    bench.commit(1)
    bench.world.advance(500)
    (shown,) = bench.shown()
    assert shown["api"] == "OffsetCommit"


FILTERS = {
    "api": ({"api": "OffsetCommit"}, [0, 2]),
    "api in Kafka's capitals": ({"api": "OFFSET_COMMIT"}, [0, 2]),
    "group": ({"group": "g"}, [0]),
    "group by pattern": ({"group": "?"}, [0, 2]),
    "topic": ({"topic": "t"}, [0, 1, 2]),
    "other topic": ({"topic": "u"}, []),
    "client": ({"client_id": "cl*"}, [0, 1, 2]),
    "other client": ({"client_id": "x"}, []),
    "connection": ({"connection": "127.0.0.1:50000"}, [0, 1, 2]),
    "other connection": ({"connection": "127.0.0.1:1"}, []),
    "error": ({"error": "ILLEGAL_GENERATION"}, [2]),
    "two": ({"group": "h", "error": "ILLEGAL_GENERATION"}, [2]),
}


@each_case("filters, fits", FILTERS.values(), FILTERS)
def test_filters(filters, fits):
    bench = Bench()
    bench.commit(1)
    bench.client.send(produce_request("t", 0, b"a"), 9)
    bench.client.send(commit_request("h", {0: 1}, member_id="nobody", generation_id_or_member_epoch=3), 8)
    assert [each["correlation_id"] - 1 for each in bench.shown(**filters)] == fits


CUT = {  # of a large Produce and a Fetch with a large reply
    "neither is decoded for it": ({"client_id": "client"}, [True, True]),
    "Produce names topics": ({"topic": "u"}, [None, False]),
    "Produce names no groups": ({"group": "g"}, [False, False]),
    "another filter does not fit": ({"topic": "u", "client_id": "x"}, [False, False]),
    "Fetch has its errors in the reply": ({"error": "NOT_LEADER_OR_FOLLOWER"}, [False, None]),
    "Fetch fits, and its errors are unknown": ({"topic": "t", "error": "NOT_LEADER_OR_FOLLOWER"}, [False, None]),
    "Fetch does not fit, whatever its errors": ({"topic": "u", "error": "NOT_LEADER_OR_FOLLOWER"}, [False, False]),
    "API": ({"topic": "u", "api": "Fetch"}, [False, False]),
}


@each_case("filters, verdicts", CUT.values(), CUT)
def test_frames_that_were_cut_are_told_apart_from_those_that_do_not_fit(filters, verdicts):
    bench = Bench()
    bench.client.call(produce_request("t", 0, b"x" * 50_000), 9)
    bench.client.call(fetch_request("t", 0, 0), 12)
    assert [is_fit for _, is_fit in bench.judged(**filters)] == verdicts


def test_request_whose_reply_has_not_been_sent_was_not_answered_with_an_error():
    bench = Bench()
    bench.client.send(fetch_request("t", 0, 0, max_wait_ms=500), 12)
    assert [is_fit for _, is_fit in bench.judged(error="NOT_LEADER_OR_FOLLOWER")] == [False]


def test_names_of_deleted_topics_are_those_of_the_last_ones():
    ring = Bench().ring
    ids = [number.to_bytes(16, "big") for number in range(MOST_NOTES + 1)]
    for topic_id in ids:
        ring.topic_deleted(topic_id, "t")
    assert list(ring.deleted_topics) == ids[1:]


WRONG = {
    "API": ({"api": "OffsetComit"}, "did you mean OffsetCommit"),
    "API without a name": ({"api": ""}, "is no API"),
    "key above all": ({"api": "99999"}, "is no API"),
    "error": ({"error": "NOT_COORDINATR"}, "did you mean NOT_COORDINATOR"),
    "no error": ({"error": "NONE"}, "not an error"),
}


@each_case("filters, says", WRONG.values(), WRONG)
def test_api_or_error_that_does_not_exist_is_refused(filters, says):
    with pytest.raises(FaultError, match=says):
        check_filters(filters)


@pytest.mark.parametrize("api", ["offset_commit", "8", "TLS hello", "http hello", "999"])
def test_api_is_named_by_name_or_key_or_as_the_hello_of_a_stranger(api):
    check_filters({"api": api})


def test_api_is_found_by_its_key():
    bench = Bench()
    bench.commit(1)
    assert len(bench.shown(api="8")) == 1
    assert bench.shown(api="9") == []


def test_software_is_what_the_client_said_it_is():
    bench = Bench()
    hello = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.16")
    bench.client.call(hello, 3)
    bench.commit(1)
    assert [each["software"] for each in bench.shown()] == ["librdkafka 2.16"] * 2


def test_secrets_do_not_enter():
    bench = Bench()
    secret = b"correct horse"
    upsertion = ScramCredentialUpsertion(name="alice", mechanism=1, iterations=4096, salt=b"s", salted_password=secret)
    bench.client.send(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
    settings = [
        IncrementalAlterConfigsRequestAlterableConfig(name=key, value=value)
        for key, value in (("ssl.keystore.password", secret.decode()), ("retention.ms", "7"))
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=2, resource_name="t", configs=settings)
    bench.client.send(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    bench.client.send(SaslAuthenticateRequest(auth_bytes=secret), 2)  # not served: the connection is closed
    shown = bench.shown()
    assert [each["api"] for each in shown][2] == "SaslAuthenticate"
    assert secret not in b"".join(kept for piece in bench.ring.pieces for kept, _ in piece.each())
    values = {each["name"]: each["value"] for each in shown[1]["request"]["resources"][0]["configs"]}
    assert values == {"ssl.keystore.password": "[hidden]", "retention.ms": "7"}
    assert shown[0]["request"]["upsertions"][0]["name"] == "alice"


def test_fault_that_acted_is_named():
    bench = Bench()
    bench.world.broker.faults.add({"fault": "inject_error", "error": "NOT_COORDINATOR", "name": "refuse"})
    bench.commit(1)
    (shown,) = bench.shown()
    assert shown["fault"] == "refuse"
    assert shown["errors"] == ["NOT_COORDINATOR"]


def test_journal_that_is_off_keeps_nothing_and_forgets_nothing_of_clients():
    bench = Bench()
    broker = bench.world.broker
    bench.commit(1)
    bench.world.run()
    assert len(entries(bench.ring)) == 1
    broker.keep_journal(0)
    assert broker.clients.journal is None
    bench.commit(2)
    bench.world.run()
    assert len(bench.client.replies()) == 2
    bench.client.leave()
    bench.world.run()
    assert broker.clients.gone == []


def test_connections_that_are_closed_are_not_kept():
    bench = Bench()
    bench.commit(1)
    bench.world.run()
    bench.client.leave()
    bench.world.run()
    assert not bench.ring._peers
    assert len(bench.shown()) == 1


def test_frames_that_come_at_once_are_numbered_and_paired_one_by_one():
    bench = Bench()
    commits = [commit_request("g", {0: offset}) for offset in range(3)]
    large, silent = produce_request("t", 0, b"x" * 9000), produce_request("t", 1, b"y", acks=0)
    for start in (0, 6):
        data = b"".join(
            frame(request, 8 if request in commits else 9, number)
            for number, request in enumerate([*commits, large, silent, commits[0]], start)
        )
        bench.client.send_bytes(data)
        bench.world.run()
    shown = bench.shown()
    assert [each["correlation_id"] for each in shown] == list(range(12))
    numbers = [each["number"] for each in shown]
    assert numbers == sorted(set(numbers))
    answered = [each["answered"] for each in shown if each["answered"] >= 0]
    assert answered == sorted(set(answered))
    assert [each["correlation_id"] for each in shown if each["answered"] < 0] == [4, 10]
    assert [each["api"] for each in shown[:6]] == ["OffsetCommit"] * 3 + ["Produce"] * 2 + ["OffsetCommit"]
    assert shown[2]["request"]["topics"][0]["partitions"][0]["committed_offset"] == 2


def test_frame_that_comes_in_two_parts_is_kept_once():
    bench = Bench()
    data = frame(commit_request("g", {0: 1}), 8, 1) + frame(commit_request("g", {0: 2}), 8, 2)
    bench.client.send_bytes(data[:-10])
    bench.world.run()
    bench.client.send_bytes(data[-10:])
    assert [each["correlation_id"] for each in bench.shown()] == [1, 2]


def test_reply_that_is_streamed_from_files_keeps_its_head_and_its_size():
    bench = Bench()
    bench.client.call(produce_request("t", 0, b"x" * 200_000), 9)
    bench.client.call(fetch_request("t", 0, 0), 12)
    fetch = bench.shown()[1]
    assert fetch["bytes_out"] > 200_000
    assert fetch["latency_ms"] == 0
    assert fetch["response"] is None


def test_token_in_a_reply_does_not_enter():
    bench = Bench()
    connection, token = bench.client.connection, b"a token's hmac"
    request = frame(CreateDelegationTokenRequest(), 3, 9)
    bench.ring.took(connection, request, len(request))
    body = codec(CreateDelegationTokenResponse, 3).encode(CreateDelegationTokenResponse(hmac=token, token_id="id"))
    reply = (9).to_bytes(4, "big") + b"\0" + body
    bench.ring.sent(connection, len(reply).to_bytes(4, "big") + reply)
    (shown,) = bench.shown()
    assert (shown["response"]["token_id"], shown["response"]["hmac"]) == ("id", "")
    assert token not in b"".join(kept for piece in bench.ring.pieces for kept, _ in piece.each())
    assert not bench.ring._peers[connection].secret_replies


def test_frames_in_pieces_are_kept_once_each():
    bench = Bench()
    first = bench.client.connection
    for offset in range(20):
        bench.commit(offset)
    data = bytes(bench.client.transport.received)
    assert data == b""
    bench.world.run()
    assert first is bench.client.connection
    assert [each["correlation_id"] for each in bench.shown()] == list(range(1, 21))


def test_request_of_an_unknown_api_is_shown_by_its_key():
    bench = Bench()
    bench.client.send_bytes((8).to_bytes(4, "big") + (999).to_bytes(2, "big") + bytes(2) + (7).to_bytes(4, "big"))
    (shown,) = bench.shown(connection="127.0.0.1:50000")
    assert (shown["api"], shown["correlation_id"], shown["request"]) == ("999", 7, None)
    assert bench.shown(api="OffsetCommit") == []
