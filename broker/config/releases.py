"""`as.version`: the API versions and features of an older Apache Kafka, which a cluster then does not go beyond.

Only what both serve is served: an API that the release does not have is refused, and so are versions that it does not
know, by shortcuts too. A feature is at the level that the release gives a new cluster, and no higher one can be set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from broker.config.config_values import ConfigError

KEY = "as.version"
NOT_SERVED = (1, 0)  # no version is between these


class Release(NamedTuple):
    """An Apache Kafka release: API key -> (oldest, newest version), feature -> (lowest, highest, default level)."""

    name: str
    apis: dict[int, tuple[int, int]]
    features: dict[str, tuple[int, int, int]]

    def clip(self, api_key: int, oldest: int, newest: int) -> tuple[int, int]:
        """The versions of an API that both serve; NOT_SERVED: none."""
        first, last = self.apis.get(api_key, NOT_SERVED)
        return (max(first, oldest), min(last, newest)) if max(first, oldest) <= min(last, newest) else NOT_SERVED

    def feature_level(self, name: str) -> int:
        """The level of a feature in a new cluster; 0 where the release does not know it."""
        return self.features.get(name, (0, 0, 0))[2]


def release_named(text: str) -> Release | None:
    """The release of a name such as 3.9 or 3.9.1; None for "". Errors: ConfigError."""
    if not text.strip():
        return None
    from broker.config.release_tables import RELEASES  # 1 ms

    wanted = text.strip().split(".")
    apis: dict[int, tuple[int, int]] = {}
    for name, changes, features in RELEASES:
        for key, versions in (each.split(":") for each in changes.split()):
            if versions == "gone":
                del apis[int(key)]
            else:
                oldest, newest = versions.split("-")
                apis[int(key)] = int(oldest), int(newest)
        if wanted[:2] == name.split(".") and all(part.isdigit() for part in wanted[2:]) and len(wanted) <= 3:
            return Release(name, apis, _features(features))
    raise ConfigError(KEY, text, f"must be a release of Apache Kafka from {RELEASES[0][0]} to {RELEASES[-1][0]}")


def _features(text: str) -> dict[str, tuple[int, int, int]]:
    found = {}
    for each in text.split():
        name, _, levels = each.partition(":")
        lowest, highest, default = levels.split("-")
        found[name] = int(lowest), int(highest), int(default)
    return found


def release_like(versions: Mapping[int, tuple[int, int]]) -> str | None:
    """The newest release all of whose client APIs end as in these ranges of a broker; None: no release is like it."""
    from broker.config.release_tables import RELEASES  # 1 ms

    found = None
    for name, _, _ in RELEASES:
        release = release_named(name)
        assert release is not None
        shared = release.apis.keys() & versions.keys()
        if len(shared) > 20 and all(release.apis[key][1] == versions[key][1] for key in shared):
            found = name
    return found
