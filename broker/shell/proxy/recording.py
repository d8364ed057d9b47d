"""The recording of a proxy: all that its clients said and were told, in one file for `momus replay`.

It is the file of a kept run (shell/copies/recordings.py) without data to begin with: `about.json` names the topics that
the upstream cluster had, with their partitions, the settings of its brokers that clients meet in answers, and says that
the run was one on another cluster.
"""

from __future__ import annotations

import io
import json
import logging
import zipfile
from typing import TYPE_CHECKING, Any, Final

from broker.asks import configs
from broker.asks.ask import Node
from broker.asks.topics import metadata
from broker.cluster.data.copies import RECORDINGS
from broker.config.key_effects import OBEYED
from broker.journal.reading import describe, entries
from broker.journal.recording import Recording
from broker.shell.copies.recordings import FORMAT
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.shell.proxy.server import ProxyServer
    from broker.shell.proxy.upstream import Upstream
    from storage.files.env import Files

log = logging.getLogger("momus.proxy")

FOLLOWED: Final = (  # of the settings that momus obeys
    "auto.create.topics.enable",
    "default.replication.factor",
    "delete.topic.enable",
    "log.message.timestamp.type",
    "message.max.bytes",
    "min.insync.replicas",
    "num.partitions",
    "offset.metadata.max.bytes",
    "offsets.topic.num.partitions",
    "transaction.max.timeout.ms",
    "transaction.state.log.num.partitions",
    *(key for key in OBEYED if key.startswith(("group.consumer.", "group.share.")) and key.endswith(("ms", "limit"))),
    *(key for key in OBEYED if key.startswith(("group.initial.", "group.max.", "group.min."))),
)


async def settings_of(upstream: Upstream) -> dict[str, str]:
    """What a broker of the cluster is set to, of FOLLOWED; {}: it does not tell. Errors: OSError, TimeoutError."""
    node_id = next(iter(upstream.places))
    asked = configs.describe(configs.BROKER, [str(node_id)], sorted(FOLLOWED), Node(node_id))
    (found,) = await upstream.answer(asked)
    if found.error_code != ErrorCode.NONE:
        log.warning("the settings of the cluster are not recorded: error %d", found.error_code)
    return {row.name: row.value for row in found.configs if row.name in FOLLOWED and row.value is not None}


class ProxyRecording:
    """One recording, from the start of a proxy to its end. `path`: of the file; `folder`: for the events meanwhile."""

    def __init__(self, disk: Files, folder: str, path: str) -> None:
        self._disk = disk
        self._folder = f"{folder}/{RECORDINGS}"
        self._path = path
        self._about: dict[str, Any] = {}
        disk.makedirs(self._folder)
        self.recording = Recording(disk.open_append(f"{self._folder}/events"))

    async def begin(self, cluster: ProxyServer) -> None:
        """Record from now on. Errors: OSError, TimeoutError: the cluster does not tell its topics."""
        answer = await cluster.upstream.answer(metadata(None))
        self._about = {
            "format": FORMAT,
            "upstream": True,
            "cluster": cluster.name,
            "cluster_id": cluster.upstream.cluster_id,
            "brokers": len(cluster.nodes),
            "flush": "memory",
            "seed": None,
            "at_ms": None,
            "config": await settings_of(cluster.upstream),
            "node_ids": [node.node_id for node in cluster.nodes],
            "start_ms": cluster.broker.turn.env.clock.now_ms(),
            "clock_stands": False,
            "topics": {topic.name: len(topic.partitions) for topic in answer.topics if not topic.is_internal},
        }
        cluster.recording = self.recording
        cluster.broker.keep_journal(cluster.plan.journal_bytes, self.recording)

    def end(self, cluster: ProxyServer) -> None:
        """Write the file. Errors: OSError."""
        about = {
            **self._about,
            "now_ms": cluster.broker.turn.env.clock.now_ms(),
            "faults": [fault.as_json() for fault in cluster.broker.faults.all()] if cluster.broker.has_faults else [],
            "events": self.recording.events,
            "is_whole": not self.recording.is_full,
        }
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            file.writestr("about.json", json.dumps(about, indent=2))
            file.writestr("events", self.recording.read())
            ring = cluster.broker.clients.journal
            if ring is not None:
                lines = [json.dumps(describe(each, ring)) + "\n" for each in entries(ring)]
                file.writestr("journal.jsonl", "".join(lines))
        self._disk.write_file_atomic(self._path, data.getvalue(), sync=False)
        self._disk.remove_tree(self._folder)
