"""Sets groups' offsets in the target and reads them back, with the admin client of kafka-python.

Not with confluent-kafka: it appends a null byte to the metadata of every offset that it commits, so the copy would not
be equal.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from momus.client.wire_security import tls_context
from pipeline.errors import PipelineError


@contextmanager
def _deprecations_ignored() -> Iterator[None]:
    """kafka-python reads its message schemas, at import and later, through functions that Python calls deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


with _deprecations_ignored():
    from kafka import KafkaAdminClient, TopicPartition
    from kafka.structs import OffsetAndMetadata

Positions = dict[tuple[str, int], tuple[int, str]]  # (topic, partition) -> offset, metadata

# librdkafka's names of settings -> kafka-python's names.
_SETTINGS: Final = {
    "bootstrap.servers": "bootstrap_servers",
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}


class Groups:
    """The groups of the target cluster."""

    def __init__(self, client: Mapping[str, Any]) -> None:
        with _deprecations_ignored():
            settings = {_SETTINGS[k]: v for k, v in client.items() if k in _SETTINGS}
            if str(client.get("security.protocol", "")).upper().endswith("SSL"):
                settings["ssl_context"] = tls_context()  # of what the job was told: it takes key stores as well
            self._admin = KafkaAdminClient(**settings)

    def set(self, group: str, positions: Positions) -> None:
        """Commit the offsets of a group. Errors: PipelineError: the group has members, or the target refuses."""
        wanted = {
            TopicPartition(*key): OffsetAndMetadata(offset, text, -1) for key, (offset, text) in positions.items()
        }
        for partition, error in self._admin.alter_group_offsets(group, wanted).items():
            if error.errno:
                raise PipelineError(
                    f"group {group} cannot be set on {partition.topic}-{partition.partition}: {error.__name__}; "
                    "a group must have no members in the target"
                )

    def get(self, group: str, partitions: Iterable[tuple[str, int]]) -> Positions:
        """The committed offsets of a group on these partitions."""
        found = self._admin.list_group_offsets({group: [TopicPartition(*each) for each in partitions]})[group]
        return {
            (partition.topic, partition.partition): (each.offset, each.metadata or "")
            for partition, each in found.items()
            if each.offset >= 0
        }

    def close(self) -> None:
        """Close the connections."""
        self._admin.close()
