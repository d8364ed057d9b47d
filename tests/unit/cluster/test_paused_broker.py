"""A virtual broker that is paused: who leads meanwhile, when its session ends, and what it does when it goes on."""

from __future__ import annotations

import pytest
from core_broker import Client
from core_requests import fetch_request, produce_request
from trio_kit import Trio

from protocol.errors import ErrorCode

SESSION_MS = 9_000  # broker.session.timeout.ms


def pause(trio: Trio, *numbers: int) -> None:
    for number in numbers:
        trio.world.broker.clients.put_to_sleep(number)
        trio.change(f"pause {number}")


def resume(trio: Trio, *numbers: int) -> None:
    for number in numbers:
        trio.world.broker.clients.wake(number)
        trio.world.run()
        trio.change(f"resume {number}")


def send(client: Client, *values: bytes) -> None:
    request = produce_request("t", 0, *values)
    request.timeout_ms = 60_000
    client.send(request, 9)
    client.world.run()


def errors(client: Client) -> list[int]:
    client.deliver()
    client.world.run()
    return [each.responses[0].partition_responses[0].error_code for each in client.replies()]


def test_no_other_leads_until_the_session_has_ended_and_the_preferred_leader_leads_when_it_goes_on() -> None:
    trio = Trio([2, 1, 3])
    pause(trio, 2)
    trio.world.advance(SESSION_MS - 1)
    assert (trio.info.leader, trio.info.isr) == (2, [2, 1, 3])
    trio.world.advance(1)
    assert (trio.info.leader, trio.info.isr) == (1, [1, 3])
    resume(trio, 2)
    assert (trio.info.leader, sorted(trio.info.isr)) == (2, [1, 2, 3])


def test_session_of_the_setting_ends() -> None:
    trio = Trio([2, 1], settings={"broker_session_timeout_ms": "500"})
    pause(trio, 2)
    trio.world.advance(499)
    assert trio.info.leader == 2
    trio.world.advance(1)
    assert trio.info.leader == 1


def test_connections_are_silent_and_requests_are_served_when_it_goes_on() -> None:
    trio = Trio([2, 1])
    waiting = trio.clients[2]
    waiting.send(fetch_request("t", 0, 0, max_wait_ms=1000), 12)
    pause(trio, 2)
    late = Client(trio.world, 1)
    for client in (waiting, late):
        send(client, b"x")
    trio.world.advance(2000)  # the Fetch is over, and its answer waits
    assert (waiting.replies(), late.replies(), waiting.closed, late.closed) == ([], [], False, False)
    assert late.pending
    resume(trio, 2)
    late.deliver()
    waiting.deliver()
    trio.world.run()
    assert (len(waiting.replies()), len(late.replies())) == (2, 1)
    assert trio.read() == (2, [b"x", b"x"])


def test_requests_of_a_broker_whose_session_has_ended_are_refused_when_it_goes_on() -> None:
    trio = Trio([2, 1])
    client = trio.clients[2]
    pause(trio, 2)
    send(client, b"lost")
    trio.world.advance(SESSION_MS)
    assert trio.produce(b"to the next") == 0
    trio.world.broker.clients.wake(2)
    trio.world.run()
    assert errors(client) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    trio.change("resume 2")
    assert trio.info.leader == 2
    send(client, b"after")
    assert errors(client) == [0]
    assert trio.read() == (2, [b"to the next", b"after"])


def test_acks_all_waits_for_a_follower_that_is_paused_until_its_session_has_ended() -> None:
    trio = Trio([1, 2])
    pause(trio, 2)
    send(trio.clients[1], b"waits")
    trio.world.advance(SESSION_MS - 1)
    assert errors(trio.clients[1]) == []
    trio.world.advance(1)
    assert (errors(trio.clients[1]), trio.info.isr) == ([0], [1])
    resume(trio, 2)
    assert trio.info.isr == [1, 2]


def test_broker_that_goes_on_in_time_has_caught_up() -> None:
    trio = Trio([1, 2])
    pause(trio, 2)
    send(trio.clients[1], b"waits")
    resume(trio, 2)
    assert (errors(trio.clients[1]), trio.info.isr) == ([0], [1, 2])
    trio.world.advance(10 * SESSION_MS)
    assert trio.info.isr == [1, 2]
    assert trio.produce(b"more") == 0


def test_broker_that_lagged_before_lags_on() -> None:
    trio = Trio([1, 2])
    trio.change("lag 2")
    pause(trio, 2)
    resume(trio, 2)
    send(trio.clients[1], b"waits")
    assert errors(trio.clients[1]) == []
    trio.change("release 2")
    assert errors(trio.clients[1]) == [0]


def test_no_broker_notices_while_all_are_paused_and_sessions_begin_again_when_one_goes_on() -> None:
    trio = Trio([2, 3, 1])
    pause(trio, 1, 2, 3)
    trio.world.advance(5 * SESSION_MS)
    assert (trio.info.leader, trio.info.isr) == (2, [2, 3, 1])
    resume(trio, 1)
    trio.world.advance(SESSION_MS - 1)
    assert trio.info.leader == 2
    trio.world.advance(1)
    assert (trio.info.leader, trio.info.isr) == (1, [1])


@pytest.mark.parametrize("ended", [True, False])
def test_broker_that_is_stopped_is_no_longer_paused(ended: bool) -> None:
    trio = Trio([2, 1])
    pause(trio, 2)
    trio.world.advance(SESSION_MS if ended else 0)
    trio.change("stop 2")
    node = trio.nodes.find(2)
    assert node is not None
    assert not trio.nodes.is_paused(node)
    assert trio.info.leader == 1
    trio.change("start 2")
    trio.world.advance(2 * SESSION_MS)
    assert (trio.info.leader, trio.nodes.is_up(node)) == (2, True)


def test_session_that_ends_while_the_disk_fails_ends_later() -> None:
    trio = Trio([2, 1])
    pause(trio, 2)
    append, failures = trio.world.broker.metadata_shard.append, [OSError("the disk fails")]

    def fail_once(*arguments: object) -> None:
        if failures:
            raise failures.pop()
        append(*arguments)  # type: ignore[arg-type]  # as they came

    trio.nodes._metadata_shard = type("Shard", (), {})()  # type: ignore[assignment]  # its append alone differs
    shard = trio.world.broker.metadata_shard
    for name, value in (("machine", shard.machine), ("flush_state", shard.flush_state), ("append", fail_once)):
        setattr(trio.nodes._metadata_shard, name, value)
    trio.world.advance(SESSION_MS)
    assert trio.info.leader == 2
    trio.world.advance(SESSION_MS)
    assert trio.info.leader == 1
