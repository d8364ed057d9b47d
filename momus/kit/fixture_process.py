"""The process of the fixtures' clusters: one of our own, the xdist controller's, or one that runs somewhere.

When one of the first two has ended by itself, the test at hand is told how, and the next one gets a new process.
"""

from __future__ import annotations

from functools import partial

from momus.control import Control
from momus.kit.shared_process import ask_controller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from momus.cluster import Keeper
    from momus.kit.process import Broker
    from momus.kit.shared_process import Shared
    from momus.kit.upstream.run import UpstreamRun


class FixtureProcess:
    """A process that runs already; nothing is known of its log, or of its end."""

    def __init__(self, control: Control | None = None) -> None:
        self._control = control
        self._deaths: dict[str, str] = {}  # address of the control endpoint -> how its process has ended
        self._untold: list[str] = []

    def find(self, keeper: Keeper) -> Control:
        """The endpoint of a process that runs. `keeper`: of clusters, which forgets those of one that has ended.

        Errors: BrokerError, RuntimeError: none can be started.
        """
        self._look()
        known = self._control
        if known is None or known.address in self._deaths:
            if known is not None:
                keeper.forget_dead(known)
            self._control = self._start()
        assert self._control is not None
        return self._control

    def death_of(self, address: str) -> str | None:
        """How the process with this endpoint has ended; None: it has not, as far as is known."""
        self._look()
        return self._deaths.get(address)

    def news(self) -> str | None:
        """How a process has ended, reported once; None: no news."""
        self._look()
        return self._untold.pop() if self._untold else None

    def log(self) -> str:
        """What the process has logged."""
        return ""

    def close(self) -> None:
        """End what was started."""

    def _start(self) -> Control:
        raise NotImplementedError

    def _look(self) -> None:
        """See whether the process has ended."""

    def _ended(self, address: str, sentence: str) -> None:
        if address not in self._deaths:
            self._deaths[address] = sentence
            self._untold.append(sentence)


class OwnProcess(FixtureProcess):
    """One that this pytest starts, when the first cluster is made. `run`: on a real cluster; None: it is none."""

    def __init__(self, log_level: str, run: UpstreamRun | None = None) -> None:
        super().__init__()
        self._log_level = log_level
        self._run = run
        self._brokers: list[Broker] = []  # the last is the one in use

    def _start(self) -> Control:
        from momus.kit.process import Broker  # 10 ms

        words: dict[str, Any] = {"log_level": self._log_level}
        made = Broker(flush="memory", **words) if self._run is None else self._run.broker(**words)
        made.is_host = True
        self._brokers.append(made.start())
        return self._brokers[-1].control

    def _look(self) -> None:
        if self._control is not None and (sentence := self._brokers[-1].death()) is not None:
            self._ended(self._control.address, sentence)

    def log(self) -> str:
        """What the process in use has logged."""
        return self._brokers[-1].log if self._brokers else ""

    def close(self) -> None:
        """End it."""
        for broker in self._brokers:
            if self._run is not None:
                self._run.finished(broker)
            broker.close()


class ControllersProcess(FixtureProcess):
    """The one of xdist's controller, which starts another one when it has ended."""

    def __init__(self, shared: Shared, ask: Callable[[str], Shared]) -> None:
        super().__init__()
        self._shared: Shared | None = shared
        self._ask = ask
        self._log_path = ""

    def _start(self) -> Control:
        shared, self._shared = self._shared or self._ask(""), None
        self._log_path = shared.log_path
        control = Control(shared.control)
        control.death = lambda: self._is_gone(control.address)
        return control

    def _is_gone(self, address: str) -> str | None:
        """It does not answer: the controller knows why. It has started another one then."""
        if address not in self._deaths:
            found = self._ask(address)
            if address in found.deaths:
                self._ended(address, found.deaths[address])
                self._shared = found
        return self._deaths.get(address)

    def log(self) -> str:
        """What the process in use has logged."""
        with open(self._log_path, encoding="utf-8", errors="replace") as file:
            return file.read()


def find_shared(controller: str) -> ControllersProcess | None:
    """A worker's end. None: the controller is elsewhere. Errors: RuntimeError: the process could not be started."""
    try:
        return ControllersProcess(ask_controller(controller, ""), partial(ask_controller, controller))
    except OSError:
        return None  # of a worker on another machine
