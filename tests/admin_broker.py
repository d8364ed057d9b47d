"""A broker for tests of cluster, topic and config requests: the handlers' view over a log that is a list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from broker.base.context import Context
from broker.cluster.metadata import ClusterMetadata
from broker.cluster.metadata_plans import start_up
from broker.config.settings import BrokerConfig
from broker.turn.decision import Decision
from broker.turn.metrics import Metrics
from broker.wire.error_counts import settle_errors
from broker.wire.errors import error_response
from protocol.codegen import codec
from protocol.errors import KafkaError
from storage.files.sim_env import sim_env

ALL_API_VERSIONS = [(0, 3, 13), (3, 0, 13), (18, 0, 5), (19, 2, 7)]


class AdminBroker:
    """Has what the handlers' views name; `call` does what the router does with a request."""

    def __init__(self, node_ids: tuple[int, ...] = (1,), **settings: str) -> None:
        self.config = BrokerConfig.load({key.replace("_", "."): value for key, value in settings.items()})
        self.nodes = SimpleNamespace(
            up=[SimpleNamespace(node_id=node_id) for node_id in node_ids],
            ids=list(node_ids),
            controller_id=node_ids[0],
            endpoint=lambda node_id, ctx: (f"host{node_id}", 9000 + node_id),
        )
        self.partitions = SimpleNamespace(size=lambda topic, index: 100 + index)
        self.cluster_id = "AAAAAAAAAAAAAAAAAAAAAA"
        self.api_versions = list(ALL_API_VERSIONS)
        self.rng = sim_env(seed=1).rng
        self.batches: list[list[bytes]] = []  # the log
        self.metadata_shard = self
        self.directory = SimpleNamespace(path="/data", cluster_id=self.cluster_id, volume_bytes=lambda: (5000, 3000))
        self.metadata = ClusterMetadata(self.config, node_ids, start_up=start_up)
        self._apply(self.metadata.on_load(Context(0, self.rng)).records)

    @property
    def groups(self) -> Any:
        return SimpleNamespace(metadata=self.metadata)

    def _apply(self, records: Any) -> None:
        batch = [value for _, value in records]
        assert batch, "an empty batch cannot be written"
        self.batches.append(batch)
        for value in batch:
            self.metadata.replay(None, value)

    def call(self, handler: Any, request: Any, version: int | None = None, node_id: int = 1) -> Any:
        """The reply as the client of a version sees it; records are replayed, after the rest is as it was."""
        if version is None:
            version = request.MAX_VERSION
        request, _ = codec(type(request), version).decode(codec(type(request), version).encode(request), 0)
        ctx = Context(0, self.rng, api_key=request.API_KEY, api_version=version, node_id=node_id, client_id="test")
        before = repr(self.metadata.fingerprint())
        try:
            result = handler(self, ctx, request)
        except KafkaError as error:
            response = error_response(request, request.API_KEY, version, error.code, error.message)
        else:
            assert repr(self.metadata.fingerprint()) == before, "a handler changed the state"
            assert isinstance(result, Decision)
            response = result.reply
            for shard, write in result.writes:
                assert shard is self
                self._apply(write.records)
        settle_errors(Metrics(), request.API_KEY, version, response)
        wire = codec(type(response), version)
        return wire.decode(wire.encode(response), 0)[0]

    def reloaded(self) -> ClusterMetadata:
        """The state as a start would find it."""
        metadata = ClusterMetadata(self.config, self.nodes.ids)
        for batch in self.batches:
            for value in batch:
                metadata.replay(None, value)
        return metadata

    def check_reload(self) -> None:
        """The log gives the same state again, and so does its image."""
        assert self.reloaded().fingerprint() == self.metadata.fingerprint()
        image = ClusterMetadata(self.config, self.nodes.ids)
        for value in self.metadata.image_records():
            image.replay(None, value)
        assert image.fingerprint() == self.metadata.fingerprint()
