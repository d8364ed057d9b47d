"""A client of a transaction coordinator, and where its things are."""

from __future__ import annotations

from core_broker import Client, World

from protocol.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest

OFFSETS = "__consumer_offsets"
WEEK_MS = 7 * 86_400_000


def group_partition(world: World, group_id: str = "g") -> int:
    return int(world.broker.groups.of(group_id).machine.index)


def set_feature(client: Client, level: int) -> None:
    kind = 3 if level < 2 else 1
    update = FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=kind)
    assert client.call(UpdateFeaturesRequest(feature_updates=[update]), 1).error_code == 0
