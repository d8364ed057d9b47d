"""The features that the cluster supports, by the served APIs, and their levels in force.

Beyond Kafka: `feature.NAME=LEVEL` as a setting does what UpdateFeatures does, permanently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from protocol.api import ApiKey

if TYPE_CHECKING:
    from broker.config.releases import Release

OLDEST_METADATA_VERSION = 7
METADATA_VERSION = 33  # as Kafka 4.4 writes it

# Feature -> (level, API, version of it that must be served for this level).
_NEEDS = {
    "eligible.leader.replicas.version": ((1, ApiKey.API_VERSIONS, 0),),  # every replica is in sync: nothing to do
    "group.version": ((1, ApiKey.CONSUMER_GROUP_HEARTBEAT, 0),),
    "kraft.version": ((1, ApiKey.API_VERSIONS, 0),),
    "share.version": ((1, ApiKey.SHARE_FETCH, 1), (2, ApiKey.SHARE_FETCH, 1)),  # 2: dead-letter queues
    "streams.version": ((1, ApiKey.STREAMS_GROUP_HEARTBEAT, 0),),
    "transaction.version": ((1, ApiKey.END_TXN, 4), (2, ApiKey.END_TXN, 5)),
}
# Levels of metadata.version from which there is no way back: each added something to the records of the metadata.
_CHANGED_METADATA = (8, 11, 13, 14, 15, 17, 23, 30, 32, 33)
FIXED = {"kraft.version": 0}  # there is no quorum whose members could change
HIGHEST = {name: levels[-1][0] for name, levels in _NEEDS.items()}


def supported(
    api_versions: Iterable[tuple[int, int, int]], release: Release | None = None
) -> dict[str, tuple[int, int]]:
    """Lowest and highest level of each feature, given the routing table's (API key, first, last version).

    `release`: one that is imitated, beyond whose levels none goes.
    """
    highest = {api_key: last for api_key, _, last in api_versions}
    ranges = {"metadata.version": (OLDEST_METADATA_VERSION, METADATA_VERSION)}
    for name, levels in _NEEDS.items():
        top = max((level for level, api, version in levels if highest.get(api, -1) >= version), default=0)
        if top:
            ranges[name] = (0, top)
    if release is None:
        return ranges
    theirs = {name: release.features[name][:2] for name in ranges.keys() & release.features.keys()}
    return {
        name: (max(low, theirs[name][0]), min(top, theirs[name][1]))
        for name, (low, top) in ranges.items()
        if name in theirs
    }


def finalized(levels: dict[str, int], ranges: dict[str, tuple[int, int]]) -> dict[str, int]:
    """The level in force of each supported feature: the recorded one, or else the highest. Level 0 is left out.

    A level is recorded only on request, so that a data directory made by an older version gets the features of the
    newer one without an upgrade command.
    """
    return {
        name: level
        for name, (lowest, highest) in ranges.items()
        if (level := max(lowest, min(levels.get(name, FIXED.get(name, highest)), highest))) > 0
    }


def may_lose_metadata(present: int, level: int) -> bool:
    """Whether a metadata.version is to be lowered below one that the records of the metadata may need."""
    return any(level < changed <= present for changed in _CHANGED_METADATA)


def level_of(name: str, levels: Mapping[str, int]) -> int:
    """The level in force of one feature, all of whose APIs are served. `levels`: the recorded ones."""
    return min(levels.get(name, HIGHEST[name]), HIGHEST[name])


def knows_level(name: str, level: int, release: Release | None) -> bool:
    """Whether the release that is imitated has this level of a feature, and so what came with it; None: the newest."""
    return release is None or release.features.get(name, (0, 0, 0))[1] >= level
