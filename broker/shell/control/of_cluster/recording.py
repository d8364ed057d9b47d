"""Routes of a cluster's recording: begin, fetch it as one file, end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.shell.control.of_cluster.journal import COUNT, COUNTED, end_life
from broker.shell.control.routes import Call, Optional_, Route

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer


async def begin_recording(cluster: ClusterServer, call: Call) -> dict[str, Any]:
    """Begin again with what the cluster holds, and record what happens from here on."""
    from broker.shell.copies import recordings  # 15 ms: most clusters are not recorded

    counted = await end_life(cluster, lambda: recordings.begin(cluster, cluster.disk), call)
    return {"events": 0, **counted}


async def fetch_recording(cluster: ClusterServer, call: Call) -> dict[str, Any]:
    """What was recorded so far, as one file. Errors: ClusterRefusedError."""
    import base64  # 1 ms

    from broker.shell.copies import recordings  # 15 ms: most clusters are not recorded

    return {"zip": base64.b64encode(recordings.pack(cluster)).decode()}


async def end_recording(cluster: ClusterServer, call: Call) -> dict[str, Any]:
    """Stop, and drop what was recorded."""
    from broker.shell.copies import recordings  # 15 ms: most clusters are not recorded

    events = 0 if cluster.recording is None else cluster.recording.events
    recordings.end(cluster, cluster.disk)
    return {"events": events}


ROUTES: Final = (
    Route(
        "POST",
        "/recording",
        begin_recording,
        "Begin again with the data that is there, as a restore does, and record all requests and replies from then on.",
        body={"count": COUNTED},
        answer={"events": int, "counted": Optional_([COUNT])},
        example={},
    ),
    Route(
        "GET",
        "/recording",
        fetch_recording,
        "What was recorded so far, as one file for `momus replay` (ZIP in base64).",
        errors={409: "it is not recorded, or the recording had to stop"},
        answer={"zip": str},
    ),
    Route("DELETE", "/recording", end_recording, "Stop, and drop what was recorded.", answer={"events": int}),
)
