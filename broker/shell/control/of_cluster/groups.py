"""Routes of groups: state, members, committed offsets, and wait for a state. Handlers are loaded when first called."""

from __future__ import annotations

from typing import Final

from broker.shell.control.routes import Optional_, Route

STATES: Final = {
    "dead": "Dead",
    "empty": "Empty",
    "stable": "Stable",
    "assigning": "Assigning",
    "reconciling": "Reconciling",
    "preparing-rebalance": "PreparingRebalance",
    "completing-rebalance": "CompletingRebalance",
    "not-ready": "NotReady",
}
GROUP: Final = {"group": str, "state": str, "type": str, "members": [str]}

ROUTES: Final = (
    Route(
        "GET",
        "/groups/{group}",
        "groups:show_group",
        "A group's state and members; Dead where there is none.",
        answer=GROUP,
    ),
    Route(
        "GET",
        "/groups/{group}/offsets",
        "groups:committed",
        "The offsets that a group has committed.",
        answer=[{"topic": str, "partition": int, "offset": int, "metadata": str}],
    ),
    Route(
        "POST",
        "/groups/{group}/wait",
        "groups:wait_for_group",
        f"Wait until a group has a state ({', '.join(STATES)}) and so many members.",
        body={"state": str, "members": Optional_(int), "timeout_ms": Optional_(int)},
        answer={**GROUP, "why": Optional_(str), "reached": bool},
        example={"state": "dead", "timeout_ms": 0},
    ),
)
