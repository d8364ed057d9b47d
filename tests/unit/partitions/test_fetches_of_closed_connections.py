"""A closed connection leaves nothing behind, however long its Fetch would have waited: no timer, watch or memory."""

from __future__ import annotations

import gc
import weakref

from core_broker import Client, World, make_topic
from core_requests import fetch_request, produce_request

WAIT_MS = 600_000


def test_fetch_of_a_closed_connection_is_gone_at_once() -> None:
    for shortcuts in (False, True):
        world = World("os", shortcuts=shortcuts)
        make_topic(Client(world), "t", 1)
        timers = world.broker.turn.timers
        idle, gone = len(timers), []
        gc.disable()
        try:
            for _ in range(40):
                client = Client(world)
                for _ in range(3):  # the shortcut learns from the first, serves the second, and leaves the third
                    client.send(fetch_request("t", 0, 0, max_wait_ms=WAIT_MS), 12)
                world.run()
                assert client.replies() == []
                assert len(timers) == idle + 3
                client.leave()
                world.run()
                assert len(timers) == idle
                world.clients.remove(client)
                gone.append(weakref.ref(client.transport))  # the connection refers to it, and has no weak references
                client.transport._connection = None  # as the loop's own transport does
                del client
            assert [each() for each in gone] == [None] * 40
        finally:
            gc.enable()


def test_timer_of_an_answered_fetch_goes_with_its_connection() -> None:
    world = World("os")
    writer, reader = Client(world), Client(world)
    make_topic(writer, "t", 1)
    timers = world.broker.turn.timers
    idle = len(timers)
    for _ in range(2):
        reader.send(fetch_request("t", 0, 0, max_wait_ms=WAIT_MS), 12)
    world.run()
    writer.call(produce_request("t", 0, b"v"), 11)
    assert len(reader.replies()) == 2
    assert len(timers) == idle + 1  # the shortcut keeps its timer for the next request
    reader.leave()
    world.run()
    assert len(timers) == idle


def test_timers_keep_few_entries_of_cancelled_calls() -> None:
    timers = World("os").broker.turn.timers
    for number in range(10_000):
        timers.cancel(timers.at(WAIT_MS + number, lambda due_ms, now_ms: None))
    assert len(timers._heap) <= 2 * len(timers) + 257
