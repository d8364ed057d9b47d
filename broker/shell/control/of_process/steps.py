"""Routes of a kept run that is open: step forward, and the two by which `momus open`, which plays it, takes steps.

The player is another process. A step waits in a queue until the player has fetched it, and is answered with what the
player then says.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypedDict, cast
from weakref import WeakKeyDictionary

from broker.shell.control.routes import Call, Optional_, RefusedError, Route

if TYPE_CHECKING:
    from broker.shell.control.routes import Process

FETCH_S: Final = 10.0  # the player asks again
STEP_S: Final = 120.0
MOST: Final = 1_000_000


class MaybeWhere(TypedDict, total=False):
    """Where a run is; `last` is the last request, `differences` and `notes` are those of the last step."""

    request: int
    requests: int
    at_ms: int
    last: str
    cluster: str
    differences: list[str]
    notes: list[str]
    ended: bool


class Where(TypedDict):
    """The same of a run that is open."""

    request: int
    requests: int
    at_ms: int
    last: str
    cluster: str
    differences: list[str]
    notes: list[str]
    ended: bool


class Wanted(TypedDict):
    """How many requests are to be played; 0: none yet."""

    requests: int


class Steps:
    """The steps of one process.

    told   what the player has said last; None: no run is open.
    """

    def __init__(self) -> None:
        self.told: Where | None = None
        self._asked: asyncio.Queue[tuple[int, asyncio.Future[Where]]] = asyncio.Queue()
        self._taken: asyncio.Future[Where] | None = None

    async def step(self, requests: int) -> Where:
        """Have so many requests played. Errors: RefusedError."""
        done: asyncio.Future[Where] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((requests, done))
        try:
            async with asyncio.timeout(STEP_S):
                return await done
        except TimeoutError:
            raise RefusedError(503, "the process that plays the run has not answered") from None

    async def fetch(self) -> int:
        """How many requests are to be played; 0: none yet."""
        try:
            async with asyncio.timeout(FETCH_S):
                while True:
                    requests, done = await self._asked.get()
                    if not done.done():  # who asked has not given up
                        self._taken = done
                        return requests
        except TimeoutError:
            return 0

    def tell(self, said: Where) -> None:
        """What the player has done."""
        self.told = said
        if self._taken is not None and not self._taken.done():
            self._taken.set_result(said)
        self._taken = None


_STEPS: WeakKeyDictionary[Process, Steps] = WeakKeyDictionary()


def _steps(process: Process) -> Steps:
    """Errors: RefusedError: no run is open."""
    found = _STEPS.get(process)
    if found is None:
        raise RefusedError(409, "no kept run is open here: `momus open FILE` opens one")
    return found


async def show(process: Process, call: Call) -> MaybeWhere:
    """Where the run is; nothing where none is open."""
    found = _STEPS.get(process)
    return {} if found is None or found.told is None else {**found.told}


async def step(process: Process, call: Call) -> Where:
    """Play the next requests. Errors: RefusedError."""
    requests = call.body.get("requests", 1)
    if not 1 <= requests <= MOST:
        raise RefusedError(400, f'"requests" takes 1 to {MOST}')
    return await _steps(process).step(requests)


async def fetch(process: Process, call: Call) -> Wanted:
    """For the player: wait for a step."""
    return {"requests": await _steps(process).fetch()}


async def tell(process: Process, call: Call) -> dict[str, str]:
    """For the player: where the run is now."""
    _STEPS.setdefault(process, Steps()).tell(cast(Where, call.body))
    return {}


WHERE: Final = {
    "request": int,
    "requests": int,
    "at_ms": int,
    "last": str,
    "cluster": str,
    "differences": [str],
    "notes": [str],
    "ended": bool,
}
EXAMPLE: Final = {"request": 1, "requests": 9, "at_ms": 0, "last": "Produce v9", "cluster": "default"} | {
    "differences": [],
    "notes": [],
    "ended": False,
}

NONE_OPEN: Final = {409: "no kept run is open here", 503: "what plays it does not answer"}

ROUTES: Final = (
    Route(
        "GET",
        "/_admin/step",
        show,
        'Where the kept run is that `momus open` has opened: "request" of "requests"; "differences" and "notes" are'
        " those of the last step. Nothing, where none is open.",
        name="show_step",
    ),
    Route(
        "POST",
        "/_admin/step",
        step,
        'Play the next request of the run, or so many "requests"; "differences" and "notes" are those of this step.',
        body={"requests": Optional_(int)},
        example={},
        errors=NONE_OPEN,
        name="step",
    ),
    Route(
        "POST",
        "/_admin/step/fetch",
        fetch,
        "For `momus open`: wait for a step.",
        body={},
        errors=NONE_OPEN,
        name="fetch_step",
        example={},
    ),
    Route(
        "POST",
        "/_admin/step/tell",
        tell,
        "For `momus open`: where the run is.",
        body=WHERE,
        name="tell_step",
        example=EXAMPLE,
    ),
)
