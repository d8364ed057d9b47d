"""Groups' offsets in the target, set and read back through its admin API.

By kafka-python: librdkafka's Python client appends a null byte to the metadata of every offset it commits, so positions
that it set would not be equal.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final

from pipeline.errors import PipelineError

Positions = dict[tuple[str, int], tuple[int, str]]  # (topic, partition) -> offset, metadata

# What both clients know, by librdkafka's names.
_SETTINGS: Final = {
    "bootstrap.servers": "bootstrap_servers",
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}


class Groups:
    """The coordinators of the target. Errors: PipelineError."""

    def __init__(self, client: Mapping[str, Any]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in a deprecated way
            from kafka import KafkaAdminClient

            self._admin = KafkaAdminClient(**{_SETTINGS[k]: v for k, v in client.items() if k in _SETTINGS})

    def set(self, group: str, positions: Positions) -> None:
        """Commit the offsets of a group that nobody is a member of."""
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        wanted = {
            TopicPartition(*place): OffsetAndMetadata(offset, text, -1) for place, (offset, text) in positions.items()
        }
        for place, error in self._admin.alter_group_offsets(group, wanted).items():
            if error.errno:
                raise PipelineError(
                    f"group {group} cannot be set on {place.topic}-{place.partition}: {error.__name__}; "
                    "a group must have no members in the target"
                )

    def get(self, group: str) -> Positions:
        """What a group has committed."""
        found = self._admin.list_group_offsets({group: None})[group]
        return {
            (place.topic, place.partition): (each.offset, each.metadata or "")
            for place, each in found.items()
            if each.offset >= 0
        }

    def close(self) -> None:
        """Take leave of the target."""
        self._admin.close()
