"""Routes of a cluster's faults: set, list, remove, let go what they keep, wait until they have acted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NewType

from broker.asks.request_rows import EventRow
from broker.faults.errors import FaultError, NotHereError
from broker.shell.control.routes import Call, Optional_, RefusedError, Route, Told
from broker.shell.control.waiting import Wait

if TYPE_CHECKING:
    from broker.faults.fault import Fault
    from broker.shell.cluster_server import ClusterServer

LOOK_AGAIN_S: Final = 0.001


# their fields are those of the fault's kind: schemas.py describes them under these names
SetFault = NewType("SetFault", dict[str, object])
ReleasedFault = NewType("ReleasedFault", dict[str, object])
AwaitedFault = NewType("AwaitedFault", dict[str, object])
FaultKind = NewType("FaultKind", dict[str, object])


async def list_faults(cluster: ClusterServer, call: Call) -> list[SetFault]:
    """All faults, in the order in which they were set, or those that are unmet. Errors: RefusedError."""
    unmet = call.query.get("unmet", "false")
    if unmet not in ("true", "false"):
        raise RefusedError(400, f'"unmet" is true or false, not {unmet:.20}')
    return [SetFault(fault.as_json()) for fault in cluster.broker.faults.all() if unmet == "false" or fault.is_unmet]


async def list_events(cluster: ClusterServer, call: Call) -> list[EventRow]:
    """The events that faults have made, oldest first, in all lives of the cluster: through restores too."""
    return cluster.events


async def list_kinds(cluster: ClusterServer, call: Call) -> list[FaultKind]:
    """The kinds of faults, each with its fields and filters."""
    from broker.faults.kinds import KINDS  # 2 ms: most brokers have no faults

    return [FaultKind(kind.as_json()) for kind in KINDS.values()]


async def set_fault(cluster: ClusterServer, call: Call) -> SetFault:
    """Set a fault, which acts from the next request on. Errors: RefusedError."""
    try:
        return SetFault(cluster.broker.faults.add(call.body).as_json())
    except FaultError as error:
        raise RefusedError(501 if isinstance(error, NotHereError) else 400, str(error)) from None


async def show_fault(cluster: ClusterServer, call: Call) -> SetFault:
    """One fault. Errors: RefusedError."""
    return SetFault(_find(cluster, call).as_json())


async def remove_fault(cluster: ClusterServer, call: Call) -> SetFault:
    """Remove a fault, and let go what it keeps. Returns how it was at the end. Errors: RefusedError."""
    fault = _find(cluster, call)
    cluster.broker.faults.remove(fault.name)
    return SetFault(fault.as_json())


async def remove_all(cluster: ClusterServer, call: Call) -> list[SetFault]:
    """Remove all faults. Returns how they were at the end."""
    faults = cluster.broker.faults.all()
    for fault in faults:
        cluster.broker.faults.remove(fault.name)
    return [SetFault(fault.as_json()) for fault in faults]


async def release(cluster: ClusterServer, call: Call) -> ReleasedFault:
    """Let go requests and replies that a fault keeps. Errors: RefusedError."""
    fault, most = _find(cluster, call), call.body.get("most")
    if most is not None and most < 1:
        raise RefusedError(400, '"most" is 1 or more')
    released = cluster.broker.faults.release(fault, most)
    return ReleasedFault({**fault.as_json(), "released": released})


async def wait_for_fault(cluster: ClusterServer, call: Call) -> AwaitedFault:
    """Wait until a fault keeps, or has acted on, so many requests. Errors: RefusedError."""
    fault, wanted = _find(cluster, call), dict(call.body)
    timeout_ms = wanted.pop("timeout_ms")
    if len(wanted) != 1:
        raise RefusedError(400, 'give one of "held" and "hits"')
    ((what, least),) = wanted.items()
    with Wait(cluster, timeout_ms, LOOK_AGAIN_S) as wait:
        while getattr(fault, what) < least and not wait.is_over:
            await wait.pause()
    shown, count = fault.as_json(), getattr(fault, what)
    counts = f"calls={fault.calls}, hits={fault.hits}, held={fault.held}"
    why = "" if count >= least else f"{fault.name} ({shown['fault']}) was to have {what}={least}, but has {counts}"
    return AwaitedFault({**shown, "met": not why, "why": why})


def _find(cluster: ClusterServer, call: Call) -> Fault:
    faults = cluster.broker.faults
    fault = faults.find(call.words["name"])
    if fault is None:
        known = ", ".join(each.name for each in faults.all()[:10])
        raise RefusedError(404, f"no such fault: {call.words['name']:.100}; there are {known or 'none'}")
    return fault


EXAMPLE: Final = {"fault": "inject_error", "api": "OffsetCommit", "error": "NOT_COORDINATOR", "trigger": "once"}

ROUTES: Final = (
    Route(
        "GET",
        "/faults",
        list_faults,
        "All faults, with how often each was met and has acted.",
        query={"unmet": "true: only those that have acted on nothing"},
    ),
    Route(
        "POST",
        "/faults",
        set_fault,
        "Set a fault, which acts from the next request on. docs/faults.md lists them.",
        body=Told(dict, "Fault"),
        name="add_fault",
        example=EXAMPLE,
    ),
    Route(
        "GET",
        "/faults/kinds",
        list_kinds,
        "The kinds of faults, each with its fields and filters.",
        name="fault_kinds",
    ),
    Route("DELETE", "/faults", remove_all, "Remove all faults; what they keep goes on.", name="clear_faults"),
    Route(
        "GET",
        "/made-events",
        list_events,
        "The events that faults of the kind make_event have made, through restores and restarts of the cluster.",
    ),
    Route("GET", "/faults/{name}", show_fault, "One fault."),
    Route("DELETE", "/faults/{name}", remove_fault, "Remove a fault; what it keeps goes on."),
    Route(
        "POST",
        "/faults/{name}/release",
        release,
        "Let go what a fault keeps: all of it, or the `most` oldest.",
        body={"most": Optional_(int)},
        name="release_fault",
        example={},
    ),
    Route(
        "POST",
        "/faults/{name}/wait",
        wait_for_fault,
        "Wait until a fault keeps (`held`), or has acted on (`hits`), so many requests.",
        body={"held": Optional_(int), "hits": Optional_(int), "timeout_ms": int},
        example={"hits": 1, "timeout_ms": 0},
        unmet=408,
    ),
)
