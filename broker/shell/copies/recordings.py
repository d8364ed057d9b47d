"""A cluster that is recorded: it begins from a snapshot, and what happens then can be packed into one file.

The file is a ZIP: `about.json` (the plan of the cluster, its clock, its faults), `start/...` (the data directory at the
beginning), `events` (broker/journal/recording.py) and `journal.jsonl` (the last requests, decoded).
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any, Final

from broker.cluster.data.copies import RECORDINGS, SNAPSHOTS
from broker.journal.reading import describe, entries
from broker.journal.recording import Recording
from broker.journal.secrets import is_secret_setting
from broker.shell.cluster_plan import ClusterRefusedError
from broker.shell.copies.snapshots import DATA

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.shell.cluster_server import ClusterServer
    from storage.files.env import Files

FORMAT: Final = 1
# Settings that a replay, which authenticates no client, does not need; some are secrets.
SECURED: Final = ("listener", "advertised.", "sasl.", "ssl.", "security.", "authorizer.", "super.users", "delegation.")
START: Final = "start-of-recording"


async def begin(cluster: ClusterServer, disk: Files) -> Broker:
    """Take a snapshot, and begin again from it, so that a replay can begin as this life does. Returns, and fails, as
    `restore`."""
    end(cluster, disk)
    folder = f"{cluster.plan.data_dir}/{RECORDINGS}"
    disk.makedirs(folder)
    if any(each["name"] == START for each in cluster.snapshots.all()):
        await cluster.remove_snapshot(START)
    await cluster.take_snapshot(START)
    cluster.recording = Recording(disk.open_append(f"{folder}/events"))
    return await cluster.restore(START)


def end(cluster: ClusterServer, disk: Files) -> None:
    """Stop, and drop what was recorded."""
    cluster.stop_recording()
    disk.remove_tree(f"{cluster.plan.data_dir}/{RECORDINGS}")


def pack(cluster: ClusterServer) -> bytes:
    """The file. Errors: ClusterRefusedError: nothing is recorded."""
    recording = cluster.recording
    if recording is None:
        raise ClusterRefusedError(f"the cluster {cluster.name} is not recorded")
    plan, snapshot = cluster.plan, cluster.snapshots.find(START)
    about: dict[str, Any] = {
        "format": FORMAT,
        "cluster": plan.name,
        "cluster_id": cluster.broker.cluster_id,
        "brokers": plan.brokers,
        "flush": plan.flush,
        "seed": plan.seed,
        "at_ms": plan.at_ms,
        "config": {
            key: value
            for key, value in plan.properties.items()
            if not key.startswith(SECURED) and not is_secret_setting(key)
        },
        "node_ids": [node.node_id for node in cluster.nodes],
        "start_ms": snapshot["taken_ms"],
        "now_ms": cluster.clock.now_ms(),
        "clock_stands": cluster.clock.stands_at_ms is not None,
        "faults": [fault.as_json() for fault in cluster.broker.faults.all()],
        "events": recording.events,
        "is_whole": not recording.is_full,
    }
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("about.json", json.dumps(about, indent=2))
        file.writestr("events", recording.read())
        ring = cluster.broker.clients.journal
        if ring is not None:
            file.writestr("journal.jsonl", "".join(json.dumps(describe(each, ring)) + "\n" for each in entries(ring)))
        files, root = cluster.snapshots.files, f"{plan.data_dir}/{SNAPSHOTS}/{START}/{DATA}"
        for name in files.listdir(root):
            topic, _, index = name.rpartition("-")
            is_folder = bool(topic) and index.isdigit()
            names = [f"{name}/{each}" for each in files.listdir(f"{root}/{name}")] if is_folder else [name]
            for each in names:
                file.writestr(f"start/{each}", files.read_file(f"{root}/{each}"))
    return data.getvalue()
