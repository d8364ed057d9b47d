"""Counts what the broker does for one request: calls, instructions, blocks of memory. No clock is read.

calls         Python functions of protocol/, storage/ and broker/ that begin (sys.setprofile)
builtins      functions written in C that these call
instructions  bytecode instructions that these execute (sys.settrace)
blocks        blocks of Python's memory that are kept

Each is the sum over ROUNDS requests, after WARM of the same kind. Blocks are those of all requests of a script, in
LONG rounds: what one request leaves another one frees, and Python keeps some free objects at hand, so they differ from
run to run by some tenths of a block a round; the others by nothing. A new broker on disk serves each meter and script.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import core_broker
from core_broker import Client, World, frame

from storage.clock.manual_clock import ManualClock
from storage.files.env import Env, Rng, SystemFiles
from work.scripts import SCRIPTS, Script

REPOSITORY = Path(__file__).parents[2]
WARM, ROUNDS, LONG = 20, 40, 400
COUNTED = tuple(f"{REPOSITORY / name}/" for name in ("protocol", "storage", "broker"))
SIMULATED = str(REPOSITORY / "storage" / "clock" / "manual_clock.py")  # the clock that stands
START_MS = 1_700_000_000_000


class Calls:
    """Counts calls of Python functions and of builtins."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self._ours: dict[Any, bool] = {}

    def begin(self) -> None:
        sys.setprofile(self._event)

    def end(self) -> None:
        sys.setprofile(None)

    def _event(self, frame: Any, event: str, _: object) -> None:
        if is_ours(self._ours, frame.f_code):
            if event == "call":
                self.counts["calls"] += 1
            elif event == "c_call":
                self.counts["builtins"] += 1


class CallsByName(Calls):
    """Counts calls of each function, to find what is new."""

    def _event(self, frame: Any, event: str, argument: Any) -> None:
        if is_ours(self._ours, frame.f_code):
            if event == "call":
                file = frame.f_code.co_filename.removeprefix(f"{REPOSITORY}/")
                self.counts[f"{file}: {frame.f_code.co_qualname}"] += 1
            elif event == "c_call":
                self.counts[argument.__qualname__] += 1


class Files(Calls):
    """Counts calls by the file that the function is in."""

    def _event(self, frame: Any, event: str, _: object) -> None:
        if event == "call" and is_ours(self._ours, frame.f_code):
            self.counts[frame.f_code.co_filename.removeprefix(f"{REPOSITORY}/")] += 1


class Instructions:
    """Counts bytecode instructions."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self._ours: dict[Any, bool] = {}

    def begin(self) -> None:
        sys.settrace(self._called)

    def end(self) -> None:
        sys.settrace(None)

    def _called(self, frame: Any, event: str, _: object) -> Any:
        if not is_ours(self._ours, frame.f_code):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._executed

    def _executed(self, frame: Any, event: str, _: object) -> Any:
        if event == "opcode":
            self.counts["instructions"] += 1
        return self._executed


class Idle:
    """Counts nothing, while the broker warms up."""

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass


class Blocks:
    """Counts the blocks of memory that are kept from the first counted request of a script to its last."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._more = 0

    @property
    def counts(self) -> dict[str, int]:
        """As many as ROUNDS rounds would leave."""
        return {"blocks": round(self._more * ROUNDS / LONG)}

    def begin(self) -> None:
        if self._first is None:
            self._first = sys.getallocatedblocks()

    def end(self) -> None:
        assert self._first is not None
        self._more = sys.getallocatedblocks() - self._first


METERS = (Calls, Instructions, Blocks)


def is_ours(known: dict[Any, bool], code: Any) -> bool:
    """Whether a function belongs to what is counted."""
    found = known.get(code)
    if found is None:
        found = known[code] = code.co_filename.startswith(COUNTED) and code.co_filename != SIMULATED
    return found


def measure(meters: tuple[type, ...] = METERS) -> dict[str, dict[str, int]]:
    """Name of a request -> what it takes, by all meters."""
    found: dict[str, dict[str, int]] = {}
    gc.collect()
    gc.disable()  # it would run now and then, and count where it does
    for make in meters:
        for script in SCRIPTS:
            with tempfile.TemporaryDirectory() as folder:
                core_broker.DATA = folder
                world = World("os", Env(ManualClock(START_MS), Rng(1), SystemFiles(64)))
                for name, counts in play(Client(world), script, make).items():
                    found.setdefault(name, {}).update(counts)
                world.broker.close()
    gc.enable()
    return found


def play(client: Client, script: Callable[[Client, int], Script], make: Callable[[], Any]) -> dict[str, dict[str, int]]:
    """Run one script to its end; counts by name."""
    meters: dict[str, Any] = {}
    seen = Counter[str]()
    run = script(client, WARM + (LONG if make is Blocks else ROUNDS))
    name, request, version = next(run)
    while True:
        seen[name] += 1
        client.world.clock.advance(1 + seen[name] % 3)
        if name:
            meter = meters.setdefault(f"a round of {script.__name__}" if make is Blocks else name, make())
            reply = serve(client, request, version, meter if seen[name] > WARM else Idle())
        else:
            reply = client.call(request, version)
        assert (reply is None) is name.endswith("waits"), name
        if reply is not None:
            check(name, reply)
        try:
            name, request, version = run.send(reply)
        except StopIteration:
            return {each: meter.counts for each, meter in meters.items()}


def serve(client: Client, request: Any, version: int, meter: Any) -> Any:
    """Hand the broker one request, and run the turns that follow from it. Returns its reply; None: it waits.

    No timers and no jobs, as World.run does: cleaning waits for threads, whose speed is the machine's.
    """
    client.correlation_id += 1
    client.asked.append((request.API_KEY, version))
    data = frame(request, version, client.correlation_id, "orders")
    receive, turn = client.connection.data_received, client.world.turn
    meter.begin()
    receive(data)
    while turn():
        pass
    meter.end()
    return client.last_reply()


def check(name: str, reply: Any) -> None:
    """Errors take other ways than the usual requests, so there must be none."""
    for each in (reply, *(row for field in reply.__slots__ for row in rows(getattr(reply, field)))):
        code = getattr(each, "error_code", 0) or getattr(each, "partition_error_code", 0)
        assert not code, f"{name or 'a request before'}: error {code}"


def rows(value: Any) -> list[Any]:
    """The messages in an array, and those in their arrays."""
    if not isinstance(value, list):
        return []
    found = [each for each in value if hasattr(each, "__slots__")]
    return found + [deep for each in found for field in each.__slots__ for deep in rows(getattr(each, field))]
