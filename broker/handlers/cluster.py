"""ApiVersions, UpdateFeatures and DescribeLogDirs.

ApiVersions      v3: client software name and version; features as tagged fields (KIP-511, KIP-584). v4: features whose
                 lowest level is 0 are listed (KIP-1022). v5: the cluster and the node that the client means (KIP-1242).
UpdateFeatures   v1: kind of upgrade, validation only. v2: no result for each feature.
DescribeLogDirs  v3: top-level error. v4: sizes of the volume. v5: whether the directory is cordoned.

Differs: ApiVersions lists Produce from version 0 on, which librdkafka looks for; 0 to 2 are refused.
         UpdateFeatures refuses every kraft.version but 0: there is no quorum.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from broker.base.context import Context
from broker.cluster.metadata_plans import set_feature_level
from broker.config.features import FIXED, finalized, may_lose_metadata, supported
from broker.handlers.admin_view import after_metadata
from broker.turn.decision import Decision
from protocol.api import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.cluster import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FeatureUpdateKey,
    FinalizedFeatureKey,
    SupportedFeatureKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from protocol.messages.log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker.cluster.data.directory import DataDirectory
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.nodes import Nodes
    from broker.coordinator.runtime import Shard
    from broker.partitions.table import Partitions

logger = logging.getLogger("momus.cluster")

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def metadata_shard(self) -> Shard: ...
    @property
    def api_versions(self) -> Sequence[tuple[int, int, int]]: ...
    @property
    def nodes(self) -> Nodes: ...
    @property
    def directory(self) -> DataDirectory: ...
    @property
    def partitions(self) -> Partitions: ...


def api_versions(broker: View, ctx: Context, request: ApiVersionsRequest) -> Decision:
    """Answer the routing table and the features.

    Errors:  INVALID_REQUEST: the software's name or version, or one of cluster and node without the other.
             REBOOTSTRAP_REQUIRED: the client means another cluster or node. Before authentication nothing is compared.
    Source:  KIP-1242; ApiVersionsRequest.isValid, SaslServerAuthenticator.
    """
    if ctx.api_version >= 3:
        for text in (request.client_software_name, request.client_software_version):
            if not _SOFTWARE.fullmatch(text):
                raise KafkaError(ErrorCode.INVALID_REQUEST)
        cluster_id, node_id = request.cluster_id, request.node_id
        if (cluster_id is None) != (node_id == -1):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        is_here = cluster_id is None or (cluster_id == broker.directory.cluster_id and node_id == ctx.node_id)
        if not is_here and (ctx.connection is None or ctx.connection.guard is None):
            raise KafkaError(ErrorCode.REBOOTSTRAP_REQUIRED)
    metadata = broker.metadata
    ranges = supported(broker.api_versions, broker.metadata.config.release)
    return Decision(
        ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=api_key, min_version=0 if api_key == ApiKey.PRODUCE else first, max_version=last)
                for api_key, first, last in sorted(broker.api_versions)
            ],
            supported_features=[
                SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
                for name, (lowest, highest) in ranges.items()
                if lowest > 0 or ctx.api_version >= 4
            ],
            finalized_features_epoch=metadata.version,
            finalized_features=[
                FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in finalized(metadata.feature_levels, ranges).items()
            ],
        )
    )


def update_features(broker: View, ctx: Context, request: UpdateFeaturesRequest) -> Decision:
    """Set feature levels, all or none.

    Errors:  INVALID_UPDATE_VERSION. Version 0 cannot lower a level: Kafka does not look at its AllowDowngrade any more.
    Source:  Kafka's FeatureControlManager; Apache Kafka 4.3.1 asked for each feature, level and kind of upgrade.
    """
    ranges = supported(broker.api_versions, broker.metadata.config.release)
    levels = finalized(broker.metadata.feature_levels, ranges)
    updates = {update.feature: update for update in request.feature_updates}  # of several of a feature the last one
    records: list[bytes] = []
    controller = f"Local controller {broker.nodes.controller_id}"
    for name, update in updates.items():
        fault = _update_fault(update, ranges, levels.get(name, 0), controller)
        if fault:
            raise KafkaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"The update failed for all features since the following feature had an error: {fault}",
            )
        if levels.get(name, 0) != update.max_version_level:
            records += set_feature_level(name, update.max_version_level)
    response = UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_message="NONE") for update in request.feature_updates
        ],
    )
    return after_metadata(broker, response, () if request.validate_only else records)


def _update_fault(
    update: FeatureUpdateKey,
    ranges: dict[str, tuple[int, int]],
    present: int,
    controller: str,
) -> str | None:
    """What is wrong with an update of a feature whose level is `present`, in Kafka's words."""
    name, level = update.feature, update.max_version_level
    why = _range_fault(update, ranges, controller) or _step_fault(update, present)
    if why:
        return f"Invalid update version {level} for feature {name:.100}. {why}"
    if name == "metadata.version" and may_lose_metadata(present, level):
        if update.upgrade_type == UNSAFE_DOWNGRADE:
            why = "Unsafe metadata downgrade is not supported in this version."
        else:
            why = "Refusing to perform the requested downgrade because it might delete metadata information."
        return f"Unsupported metadata.version downgrade from {present} to {level}. {why}"
    return None


def _range_fault(update: FeatureUpdateKey, ranges: dict[str, tuple[int, int]], controller: str) -> str | None:
    name, level = update.feature, update.max_version_level
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if name not in ranges:
        return f"{controller} does not support this feature." if level else f"Feature {name:.100} not found."
    lowest, highest = ranges[name]
    return None if lowest <= level <= highest else f"{controller} only supports versions {lowest}-{highest}"


def _step_fault(update: FeatureUpdateKey, present: int) -> str | None:
    name, level, kind = update.feature, update.max_version_level, update.upgrade_type
    if level < present and kind == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > present and kind != UPGRADE:
        return "Can't downgrade to a newer version."
    if level != FIXED.get(name, level):
        return f"It is always {FIXED[name]} here: the controllers are no quorum."
    return None


def describe_log_dirs(broker: View, ctx: Context, request: DescribeLogDirsRequest) -> Decision:
    """Answer the data directory, with the sizes of the partitions that this node leads."""
    wanted: dict[str, Iterable[int]] = {}
    if request.topics is None:
        wanted = {topic.name: range(len(topic.partitions)) for topic in broker.metadata.topics.values()}
    else:
        for asked in request.topics:  # a topic or partition may be named twice
            wanted[asked.topic] = dict.fromkeys([*wanted.get(asked.topic, ()), *asked.partitions])
    topics = []
    for name, indexes in wanted.items():
        topic = broker.metadata.topics.get(name)
        found = [
            DescribeLogDirsPartition(partition_index=index, partition_size=broker.partitions.size(name, index))
            for index in indexes
            if topic is not None
            and 0 <= index < len(topic.partitions)
            and ctx.node_id in topic.partitions[index].replicas
        ]
        if found:
            topics.append(DescribeLogDirsTopic(name=name, partitions=found))
    result = DescribeLogDirsResult(log_dir=broker.directory.path, topics=topics)
    try:
        result.total_bytes, result.usable_bytes = broker.directory.volume_bytes()
    except OSError as error:
        logger.error("cannot read the size of the volume of %s: %s", result.log_dir, error)
        result.error_code, result.topics = ErrorCode.KAFKA_STORAGE_ERROR, []
    return Decision(DescribeLogDirsResponse(results=[result]))
