"""Three virtual brokers in this process, and a topic on some of them, for tests of brokers that fail."""

from __future__ import annotations

from typing import Any

from core_broker import Client, World
from core_requests import fetch_bytes, fetch_request, produce_request

from broker.cluster.virtual_nodes import VirtualNodes
from protocol.messages.reassign import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ElectLeadersRequestTopicPartitions,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.record_batch import iter_batches, iter_records

COMMITTED = {"isolation_level": 1}


class Trio:
    """Three virtual brokers, and a topic `t` on some of them."""

    def __init__(
        self,
        replicas: list[int],
        flush: str = "os",
        *,
        shortcuts: bool = True,
        settings: dict[str, str] | None = None,
        **configs: str,
    ) -> None:
        settings = {"transaction_state_log_num_partitions": "1"} | (settings or {})
        self.world = World(flush, brokers=3, shortcuts=shortcuts, **settings)
        broker = self.world.broker
        self.nodes = VirtualNodes(broker.nodes, broker.metadata_shard, broker.turn, broker.partitions)
        self.clients = {node.node_id: Client(self.world, i) for i, node in enumerate(self.nodes.all)}
        self.make(replicas, **configs)

    def make(self, replicas: list[int], **configs: str) -> None:
        """Make the topic."""
        topic = CreatableTopic(
            name="t",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
            configs=[CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()],
        )
        assert self.clients[1].call(CreateTopicsRequest(topics=[topic], timeout_ms=1), 7).topics[0].error_code == 0

    def change(self, *steps: str) -> None:
        for step in steps:
            what, _, number = step.partition(" ")
            node = self.nodes.find(int(number))
            assert node is not None
            written: list[bool] = []
            getattr(self.nodes, what)(node, written.append)
            self.world.run()
            assert written == [True]

    def reassign(self, replicas: list[int]) -> None:
        topic = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=replicas)])
        answer = self.leader.call(AlterPartitionReassignmentsRequest(topics=[topic]), 1)
        assert answer.responses[0].partitions[0].error_code == 0

    def elect(self, kind: int) -> int:
        """The error of an election: 0 preferred, 1 unclean."""
        asked = [ElectLeadersRequestTopicPartitions(topic="t", partitions=[0])]
        request = ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=1000)
        (result,) = self.clients[1].call(request, 2).replica_election_results[0].partition_result
        return int(result.error_code)

    @property
    def info(self) -> Any:
        return self.world.broker.metadata.topics["t"].partitions[0]

    @property
    def leader(self) -> Client:
        return self.clients[self.info.leader]

    def produce(self, *values: bytes, acks: int = -1, **batch: Any) -> int:
        answer = self.leader.call(produce_request("t", 0, *values, acks=acks, **batch), 9)
        return int(answer.responses[0].partition_responses[0].error_code)

    def read(self, **how: Any) -> tuple[int, list[bytes | None]]:
        """(high watermark, values) from the beginning on."""
        answer = self.leader.call(fetch_request("t", 0, 0, **how), 12)
        data = fetch_bytes(answer)
        values = [r.value for at, h in iter_batches(data) for r in iter_records(data[at : at + h.size])]
        return answer.responses[0].partitions[0].high_watermark, values
