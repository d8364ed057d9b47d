"""What the control plane of a proxy does not do, each with a sentence that says why."""

from __future__ import annotations

from typing import Final

_INSIDE: Final = "this is a proxy: {} is inside the upstream cluster, which it can only ask as a client does"
_SENTENCES: Final = (  # the first that fits; of a path: its beginning
    ("/clock", _INSIDE.format("the clock")),
    ("/snapshots", "this is a proxy: it cannot take a snapshot of the upstream cluster"),
    ("/restore", "this is a proxy: it cannot bring the upstream cluster back to an earlier state"),
    ("/reset", "this is a proxy: it does not empty the upstream cluster"),
    ("/brokers/", _INSIDE.format("the life of a broker")),
    ("/users", "this is a proxy: ask the upstream cluster for its users, as any client with the right to"),
    ("/acls", "this is a proxy: ask the upstream cluster for its ACLs, as any client with the right to"),
    ("/load", "this is a proxy: `momus dump` and `momus topic create` reach any cluster, --load only a momus"),
    ("/schemas", "this is a proxy: it serves no schema registry; ask the one of the cluster"),
    (
        "/topics/{topic}/search",
        "this is a proxy: it searches no logs; the tail of a topic filters what comes, and"
        " `momus consume -b HOST:PORT` reads any cluster",
    ),
    ("/groups/{group}/history", _INSIDE.format("the history of commits")),
    ("/groups/{group}/owners", _INSIDE.format("who had which partition")),
    ("/groups/{group}/lag", _INSIDE.format("the history of a group's lag")),
    ("/groups/{group}/seek", "this is a proxy: `momus group seek -b HOST:PORT` moves the offsets of any cluster"),
    ("/groups/{group}/rebalance", _INSIDE.format("a rebalance without a member's request")),
    ("/_admin/clusters/{cluster}/fork", "this is a proxy: the cluster it stands before cannot be forked"),
    (
        "/_admin/clusters/{cluster}/registry",
        "this is a proxy: it serves no schema registry; ask the one of the cluster",
    ),
    ("/_admin/fork", "this is a proxy: the upstream cluster cannot be forked"),
    ("/_admin/diff", "this is a proxy: only clusters of momus can be compared"),
    ("/_admin/registry", "this is a proxy: it serves no schema registry; ask the one of the cluster"),
    ("/made-events", _INSIDE.format("what could be made to happen")),
    ("/left-wrong", _INSIDE.format("what is left there")),
    ("/_admin/step", "this is a proxy: it replays nothing"),
)
_LOOKS: Final = ("", "/brokers", "/clock", "/snapshots")


def refusal(method: str, path: str) -> str | None:
    """Why a call is not for a proxy; None: it is. `path`: as its route has it."""
    if method == "GET" and path in _LOOKS:
        return None
    return next((sentence for begin, sentence in _SENTENCES if path.startswith(begin)), None)
