"""Routes of a cluster's recording: begin, fetch it as one file, end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from broker.shell.control.of_cluster.journal import COUNTED, Counted, end_life
from broker.shell.control.routes import Call, Route

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer


class Recorded(TypedDict):
    """How many events were recorded."""

    events: int


class BegunRecording(Recorded):
    """A recording in its next life; `counted`: requests of the life that has ended, if they were asked for."""

    counted: NotRequired[list[Counted]]


class RecordingFile(TypedDict):
    """The recording as one file: a ZIP in base64."""

    zip: str


async def begin_recording(cluster: ClusterServer, call: Call) -> BegunRecording:
    """Begin again with what the cluster holds, and record what happens from here on."""
    from broker.shell.copies import recordings  # 15 ms: most clusters are not recorded

    counted = await end_life(cluster, lambda: recordings.begin(cluster, cluster.disk), call)
    return {"events": 0} if counted is None else {"events": 0, "counted": counted}


async def fetch_recording(cluster: ClusterServer, call: Call) -> RecordingFile:
    """What was recorded so far, as one file. Errors: ClusterRefusedError."""
    import base64  # 1 ms

    from broker.shell.copies import recordings  # 15 ms: most clusters are not recorded

    return {"zip": base64.b64encode(recordings.pack(cluster)).decode()}


async def end_recording(cluster: ClusterServer, call: Call) -> Recorded:
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
        example={},
    ),
    Route(
        "GET",
        "/recording",
        fetch_recording,
        "What was recorded so far, as one file for `momus replay` (ZIP in base64).",
        errors={409: "it is not recorded, or the recording had to stop"},
    ),
    Route("DELETE", "/recording", end_recording, "Stop, and drop what was recorded."),
)
