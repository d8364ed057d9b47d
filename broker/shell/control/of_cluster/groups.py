"""Routes of groups: state, members, offsets, waits; delete, rebalance, expel. Handlers are loaded when first called."""

from __future__ import annotations

from typing import Final

from broker.shell.control.routes import Optional_, Route

NO_ANSWER: Final = {409: "no broker leads the group's partition, or its coordinator's reason"}
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
        errors=NO_ANSWER,
        name="group",
    ),
    Route(
        "GET",
        "/groups/{group}/offsets",
        "groups:committed",
        "The offsets that a group has committed.",
        errors=NO_ANSWER,
    ),
    Route(
        "POST",
        "/groups/{group}/wait",
        "groups:wait_for_group",
        f"Wait until a group has a state ({', '.join(STATES)}) and so many members.",
        body={"state": str, "members": Optional_(int), "timeout_ms": Optional_(int)},
        example={"state": "dead", "timeout_ms": 0},
        errors=NO_ANSWER,
        unmet=408,
    ),
    Route(
        "POST",
        "/groups/{group}/wait-for-offsets",
        "group_verbs:wait_for_offsets",
        "Wait until a group has committed these offsets, or later ones.",
        body={"offsets": [{"topic": str, "partition": int, "offset": int}], "timeout_ms": Optional_(int)},
        example={"offsets": [], "timeout_ms": 0},
        errors=NO_ANSWER,
        unmet=408,
    ),
    Route(
        "POST",
        "/groups/{group}/wait-for-lag",
        "group_verbs:wait_for_lag",
        'Wait until a group is at most "lag" records after the ends of its partitions, of all or of one "topic".',
        body={"lag": int, "topic": Optional_(str), "timeout_ms": Optional_(int)},
        example={"lag": 0, "timeout_ms": 0},
        errors=NO_ANSWER,
        unmet=408,
    ),
    Route(
        "DELETE",
        "/groups/{group}",
        "group_verbs:delete_group",
        "Delete a group without members, with its offsets.",
        errors={409: "there is no such group, or it has members"},
    ),
    Route(
        "POST",
        "/groups/{group}/rebalance",
        "group_verbs:rebalance",
        "Start a rebalance: classic members join again, others get the next epoch.",
        errors={404: "no such group", 409: "it has no members"},
    ),
    Route(
        "POST",
        "/groups/{group}/expel",
        "group_verbs:expel_member",
        "Remove a member, by its id or its instance id: its next request meets UNKNOWN_MEMBER_ID.",
        body={"member": str},
        example={"member": "consumer-1"},
        errors={404: "no such group or member", 409: "the coordinator's reason"},
    ),
)
