"""Faults of a running broker, from Python: errors, delays, holds, cut connections, a failing disk.

    with Broker() as broker:
        commit = broker.faults.hold("OffsetCommit", group="billing")
        ...                               # the client commits, in a thread or a task
        commit.wait_until_held()          # its offsets are durable, its reply has not left
        broker.kill()

docs/faults.md lists the faults, filters and triggers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from momus.kit.asks import Returned, loop_note
from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it
from momus.kit.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, Literal, Unpack

    from momus.control import Control
    from momus.kit.typed import (
        ApiFilters,
        ClientFilters,
        DiskFilters,
        EventWord,
        LetterFilters,
        RegistryFilters,
        RequestFilters,
        TriggerWords,
        When,
        WhenOrMiddle,
    )

WAIT_S = 20.0  # asked for at once; longer waits ask again
MOST_NEAR = 10  # misses that are shown


class FaultTimeoutError(AssertionError):
    """A fault was waited for, and nothing met it in time."""


def on_call(n: int) -> TriggerWords:
    """The trigger of a fault that acts on the nth request that matches, counted from 1."""
    return {"on_call": n}


def times(n: int) -> TriggerWords:
    """The trigger of a fault that acts on the first n requests that match."""
    return {"times": n}


def with_probability(p: float, seed: int | None = None) -> TriggerWords:
    """The trigger of a fault that acts on each request with this probability; the same seed acts on the same ones."""
    return {"with_probability": p} if seed is None else {"with_probability": p, "seed": seed}


once: Final = "once"  # the trigger of a fault that acts on the first request that matches
every_time: Final = "every_time"
MAKERS = {on_call: "on_call(3)", times: "times(2)", with_probability: "with_probability(0.1)"}
NUMBERS = ("on_call", "times", "with_probability", "seed")  # of a trigger, where no `trigger` is given


class Fault(Returned):
    """A fault that is set."""

    def __init__(self, control: Control, prefix: str, name: str, idle: set[str] | None = None) -> None:
        self.name = name
        self._idle = idle if idle is not None else set()  # names of its cluster's faults that were not seen to act
        self._control = control
        self._path = f"{prefix}/faults/{quoted(name)}"

    def state(self) -> dict[str, Any]:
        """The fault, with `calls`, `hits` and `held`."""
        return self._ask("GET", "")

    @property
    def calls(self) -> int:
        """How many requests have matched it."""
        return int(self.state()["calls"])

    @property
    def hits(self) -> int:
        """On how many it has acted."""
        return int(self.state()["hits"])

    @property
    def held(self) -> int:
        """How many requests and replies it keeps now."""
        return int(self.state()["held"])

    def wait_until_held(self, n: int = 1, timeout: float = 10.0) -> None:
        """Wait until it keeps n requests or replies. `timeout`: seconds. Errors: FaultTimeoutError."""
        self._wait("held", n, timeout)

    def wait_until_hit(self, n: int = 1, timeout: float = 10.0) -> None:
        """Wait until it has acted n times. `timeout`: seconds. Errors: FaultTimeoutError."""
        self._wait("hits", n, timeout)

    def release(self, most: int | None = None) -> int:
        """Let go what it keeps: the `most` oldest; None: all, and replies still to come to it. Answers how many."""
        return int(self._ask("POST", "/release", {} if most is None else {"most": most})["released"])

    def remove(self) -> None:
        """Take it away; what it keeps goes on."""
        self._ask("DELETE", "")
        self._idle.discard(self.name)

    def _wait(self, what: str, n: int, timeout: float) -> None:
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            body = {what: n, "timeout_ms": int(1000 * max(0.0, min(left, WAIT_S)))}
            state = self._ask("POST", "/wait?check=false", body)
            if state["met"]:
                return
            if left <= WAIT_S:
                break
        raise FaultTimeoutError(
            f"{self.name} ({state['fault']}) was to have {what}={n} within {timeout:g} s, but has"
            f" calls={state['calls']}, hits={state['hits']}, held={state['held']}"
            f"{loop_note('a fault made by broker.aio.faults')}"
        )

    def _ask(self, method: str, suffix: str, body: object = None) -> dict[str, Any]:
        answer = self._control.ask(method, self._path + suffix, body)
        assert isinstance(answer, dict)
        if answer["hits"]:
            self._idle.discard(self.name)
        return answer

    def __repr__(self) -> str:
        return f"<Fault {self.name}>"


class Faults:
    """The faults of one cluster. Filters of all: api, version, client_id, principal, connection, listener, broker,
    topic, partition, group, transactional_id; those of the disk take topic and partition. `trigger` is every_time,
    once, on_call(n), times(n) or with_probability(p, seed)."""

    def __init__(self, control: Control, prefix: str = "/_admin", before: Faults | None = None) -> None:
        self.control = control
        self._prefix = prefix
        self._idle: set[str] = set()  # those that were set here and not seen to act
        self.unmet_before: list[str] = [] if before is None else before.unmet_before  # in processes that have ended

    def add(self, **words: object) -> Fault:
        """Set a fault by its words, as a JSON file has them. Errors: ControlError, ValueError, which say what is wrong.

        times, on_call, with_probability and seed may stand beside the others, as in a shell: they are the trigger.
        """
        given = _with_trigger({key: value for key, value in words.items() if value is not None})
        answer = self.control.ask("POST", f"{self._prefix}/faults", given)
        assert isinstance(answer, dict)
        self._idle.add(answer["name"])
        return Fault(self.control, self._prefix, answer["name"], self._idle)

    def inject_error(self, api: str | list[str], error: str, **filters: Unpack[RequestFilters]) -> Fault:
        """Refuse requests with an error of Kafka's, such as "NOT_COORDINATOR"; they take no effect."""
        return self.add(fault="inject_error", api=api, error=error, **filters)

    def delay_on(self, api: str | list[str], ms: int, when: When = "after", **filters: Unpack[RequestFilters]) -> Fault:
        """Keep replies back so long, or (`when="before"`) requests before they take effect. By the broker's clock."""
        return self.add(fault="delay_on", api=api, ms=ms, when=when, **filters)

    def hold(self, api: str | list[str], when: When = "after", **filters: Unpack[RequestFilters]) -> Fault:
        """Keep replies, or (`when="before"`) requests, until `release`."""
        return self.add(fault="hold", api=api, when=when, **filters)

    def make_event(
        self, event: EventWord, api: str | list[str], when: When = "before", **filters: Unpack[RequestFilters]
    ) -> Fault:
        """Make something happen in the cluster "before" the request takes effect, or "after" it: "rebalance",
        "expel_member", "expire_offsets", "move_coordinator", "move_leader", "restart", "abort_transaction" or
        "fence_producer". What came of it is the fault's `outcome`."""
        return self.add(fault="make_event", api=api, event=event, when=when, **filters)

    def disconnect_on(
        self, api: str | list[str], when: WhenOrMiddle = "after", **filters: Unpack[RequestFilters]
    ) -> Fault:
        """Close the connection "before" the request takes effect, "after" it, or in the "middle" of the reply."""
        return self.add(fault="disconnect_on", api=api, when=when, **filters)

    def blackhole_client(self, client_id: str, **filters: Unpack[ClientFilters]) -> Fault:
        """Neither serve nor answer a client; its connections stay open until the fault is removed."""
        return self.add(fault="blackhole_client", client_id=client_id, **filters)

    def throttle(self, bytes_per_second: int, **filters: Unpack[ApiFilters]) -> Fault:
        """Send each reply only when its bytes have had their time."""
        return self.add(fault="throttle", bytes_per_second=bytes_per_second, **filters)

    def corrupt_reply(self, api: str | list[str], at: int | None = None, **filters: Unpack[RequestFilters]) -> Fault:
        """Change one byte of the reply: the one at this place after the correlation id, else any."""
        return self.add(fault="corrupt_reply", api=api, at=at, **filters)

    def deliver_twice(self, api: str | list[str], **filters: Unpack[RequestFilters]) -> Fault:
        """Let the request take effect twice, as after a lost reply; the client gets the second reply."""
        return self.add(fault="deliver_twice", api=api, **filters)

    def slow_disk(self, ms: int, **filters: Unpack[DiskFilters]) -> Fault:
        """Let each write and each sync take so much longer."""
        return self.add(fault="slow_disk", ms=ms, **filters)

    def full_disk(self, free_bytes: int = 0, **filters: Unpack[DiskFilters]) -> Fault:
        """Let writes fail for want of room, once so many bytes have been written."""
        return self.add(fault="full_disk", free_bytes=free_bytes, **filters)

    def fail_write(self, **filters: Unpack[DiskFilters]) -> Fault:
        """Let writes fail."""
        return self.add(fault="fail_write", **filters)

    def fail_fsync(self, **filters: Unpack[DiskFilters]) -> Fault:
        """Let syncs fail."""
        return self.add(fault="fail_fsync", **filters)

    def fail_dead_letter(self, error: str, **filters: Unpack[LetterFilters]) -> Fault:
        """Refuse what the broker writes to the dead-letter queue (`topic`) of a share group (`group`)."""
        return self.add(fault="fail_dead_letter", error=error, **filters)

    def registry(
        self,
        do: Literal["error", "delay", "hold", "disconnect"],
        when: When = "before",
        *,
        status: int = 500,
        code: int = 50001,
        ms: int = 0,
        **filters: Unpack[RegistryFilters],
    ) -> Fault:
        """Let a request of the schema registry meet an "error", a "delay", a "hold" or a "disconnect".

        filters   route (RegisterSchema, GetSchema, ... of docs/registry.md), subject, principal.
        """
        return self.add(fault="registry", do=do, when=when, status=status, code=code, ms=ms, **filters)

    def load(self, faults: Iterable[dict[str, object]]) -> list[Fault]:
        """Set several, as a JSON file has them."""
        return [self.add(**each) for each in faults]

    def list(self) -> list[dict[str, Any]]:  # the name users look for
        """All that are set, with `calls`, `hits` and `held`."""
        answer = self.control.ask("GET", f"{self._prefix}/faults")
        assert isinstance(answer, list)
        return answer

    def clear(self) -> None:
        """Remove all; what they keep goes on."""
        self.control.ask("DELETE", f"{self._prefix}/faults")
        self.forget()

    def unmet(self) -> Iterable[str]:
        """A sentence for each fault that has acted on nothing: what the test meant to happen did not.

        Faults end with their process: those that had not acted by then are named too.
        """
        yield from self.unmet_before
        for each in self.list():
            if not each["hits"]:
                what, calls = _in_words(each), each["calls"]
                matched = f"{calls} request{'' if calls == 1 else 's'} matched it" if calls else "no request matched it"
                near = () if each["calls"] else self._near_misses(each)
                yield "\n  ".join((f"the fault {each['name']} never acted ({matched}): {what}", *near))

    def _near_misses(self, fault: dict[str, Any]) -> Iterable[str]:
        """Requests of the journal that fit all filters of a fault but one, if the journal knows its filters."""
        from momus.journal import FILTERS, Journal  # 2 ms: of a test that fails

        apis = fault.get("api")
        filters = {key: str(fault[key]) for key in FILTERS if key in fault and key not in ("api", "error")}
        if fault["fault"] == "registry" or not (apis or filters):
            return []
        named = [*apis] if isinstance(apis, (list, tuple)) else [apis] if apis else [None]
        journal = Journal(self.control, self._prefix)
        near = [line for api in named for line in journal.near(filters if api is None else {"api": api, **filters})]
        return near[:MOST_NEAR]

    def end(self, unmet: Iterable[str] | None) -> None:
        """Their process ends. `unmet`: the sentences of `self.unmet()`; None: it could not be asked."""
        if unmet is not None:
            self.unmet_before[:] = unmet
        else:
            self.unmet_before += [
                f"the broker ended, and could not be asked whether the fault {name} acted"
                for name in sorted(self._idle)
            ]
        self.forget()

    def forget(self) -> None:
        """No fault is set any more."""
        self._idle.clear()


def _with_trigger(words: dict[str, object]) -> dict[str, object]:
    """The words with their numbers as the trigger. Errors: ValueError."""
    trigger = words.get("trigger")
    if callable(trigger):
        example = MAKERS.get(trigger, "once")  # type: ignore[call-overload]  # any function
        raise ValueError(
            f"trigger={getattr(trigger, '__name__', trigger)} is a function: call it, as trigger={example}"
        )
    if isinstance(trigger, int) and not isinstance(trigger, bool):
        raise ValueError(
            f"trigger={trigger}: a number of requests is times={trigger}, one request is on_call={trigger}"
        )
    numbers = {key: value for key, value in words.items() if key in NUMBERS}
    if numbers:
        if trigger is not None:
            raise ValueError(f"give trigger={trigger!r} or {', '.join(numbers)}, not both")
        if "seed" in numbers and "with_probability" not in numbers:
            raise ValueError("seed= goes with with_probability=")
        words = {key: value for key, value in words.items() if key not in NUMBERS} | {"trigger": numbers}
    return words


def _in_words(fault: dict[str, Any]) -> str:
    """A fault as every kit says it: inject_error api=OffsetCommit error=NOT_COORDINATOR."""
    left_out = ("fault", "name", "hits", "held", "calls")
    return " ".join([str(fault["fault"]), *(f"{key}={_text(fault[key])}" for key in fault if key not in left_out)])


def _text(value: object) -> str:
    import json  # 1 ms: of a test that fails

    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value)
