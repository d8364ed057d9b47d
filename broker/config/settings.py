"""The settings of the broker: Kafka's keys as typed attributes, updated while running.

A broker key has the value set dynamically for the node, else dynamically for all nodes, else at the start, else
its default. Topics and groups without a value of their own use the broker's.

Differs: the defaults are made for tests: no initial rebalance delay, one replica. `--set KEY=VALUE` or
         `--config server.properties` gives Kafka's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TypeAlias

from broker.config.config_defs import GROUP_ROWS, TOPIC_ROWS, UNITS, Row
from broker.config.config_defs_broker import BROKER_ROWS
from broker.config.config_defs_security import SECURITY_ROWS
from broker.config.config_defs_share import SHARE_ROWS
from broker.config.config_defs_streams import STREAMS_ROWS
from broker.config.config_values import NO_AGE, ConfigError, StartRefusedError, Value, format_value, parse_value
from broker.config.features import FIXED, HIGHEST
from broker.config.releases import KEY as AS_VERSION
from broker.config.releases import Release, release_named

__all__ = ["BROKER_KEYS", "GROUP_KEYS", "TOPIC_KEYS", "BrokerConfig", "ConfigError"]

TOPIC_KEYS: dict[str, Row] = {row[0]: row for row in TOPIC_ROWS}
GROUP_KEYS: dict[str, Row] = {row[0]: row for row in GROUP_ROWS}
BROKER_KEYS: dict[str, Row] = {row[0]: row for row in (*BROKER_ROWS, *STREAMS_ROWS, *SHARE_ROWS, *SECURITY_ROWS)}
Logins: TypeAlias = "Mapping[str, Sequence[tuple[str, Mapping[str, str]]]]"  # entry -> login modules: class, options
FEATURE = "feature."  # prefix of a key that sets a feature's level, as UpdateFeatures does


class BrokerConfig:
    """Every broker key as an attribute: `num.partitions` is `num_partitions`. Those in use are declared."""

    node_id: int
    broker_rack: str | None
    cluster_id: str
    controller_listener_names: tuple[str, ...] | None
    listeners: tuple[str, ...]
    advertised_listeners: tuple[str, ...] | None
    listener_security_protocol_map: str
    java_security_auth_login_config: str | None
    log_dir: tuple[str, ...]
    log_dirs: tuple[str, ...] | None
    flush: str
    codec: str
    fetch_waits: str

    auto_create_topics_enable: bool
    delete_topic_enable: bool
    num_partitions: int
    default_replication_factor: int
    min_insync_replicas: int
    message_max_bytes: int
    compression_type: str
    max_request_partition_size_limit: int

    log_retention_check_interval_ms: int
    log_segment_delete_delay_ms: int
    log_cleaner_enable: bool
    log_cleaner_backoff_ms: int
    log_cleaner_min_cleanable_ratio: float
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_scheduler_interval_ms: int

    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_commit_timeout_ms: int
    offset_metadata_max_bytes: int
    offsets_any_broker: bool
    offsets_provenance: bool
    offsets_image_interval_ms: int
    archive_retain_group: str
    archive_retain_max_bytes: int
    schema_registry_url: str
    schema_registry_basic_auth_user_info: str | None
    registry_as: str

    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_initial_rebalance_delay_ms: int
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_consumer_assignors: tuple[str, ...]
    group_consumer_migration_policy: str
    group_consumer_session_timeout_ms: int
    group_consumer_min_session_timeout_ms: int
    group_consumer_max_session_timeout_ms: int
    group_consumer_heartbeat_interval_ms: int
    group_consumer_min_heartbeat_interval_ms: int
    group_consumer_max_heartbeat_interval_ms: int
    group_consumer_assignment_interval_ms: int
    group_consumer_max_size: int
    group_commit_fencing: str
    group_consumer_regex_refresh_interval_ms: int
    group_streams_session_timeout_ms: int
    group_streams_min_session_timeout_ms: int
    group_streams_max_session_timeout_ms: int
    group_streams_heartbeat_interval_ms: int
    group_streams_assignment_interval_ms: int
    group_streams_initial_rebalance_delay_ms: int
    group_streams_max_size: int
    group_streams_num_standby_replicas: int
    group_streams_max_standby_replicas: int
    group_streams_assignors: tuple[str, ...]
    group_streams_task_offset_interval_ms: int
    group_streams_rack_aware_assignment_tags: tuple[str, ...]
    group_streams_acceptable_recovery_lag: int
    group_share_first_assignment: str
    group_share_session_timeout_ms: int
    group_share_heartbeat_interval_ms: int
    group_share_assignment_interval_ms: int
    group_share_max_size: int
    group_share_initialize_retry_interval_ms: int
    group_share_max_share_sessions: int
    group_share_delivery_count_limit: int
    group_share_partition_max_record_locks: int
    group_share_record_lock_duration_ms: int

    share_coordinator_state_topic_num_partitions: int
    share_coordinator_state_topic_replication_factor: int
    share_coordinator_state_topic_min_isr: int
    share_coordinator_state_topic_segment_bytes: int
    share_coordinator_snapshot_update_records_per_snapshot: int
    share_coordinator_state_topic_prune_interval_ms: int
    share_coordinator_cold_partition_snapshot_interval_ms: int

    transaction_max_timeout_ms: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_min_isr: int
    transaction_state_log_segment_bytes: int
    transaction_partition_verification_enable: bool
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transactional_id_expiration_ms: int
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int
    producer_state: str

    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: str
    max_connection_creation_rate: int
    connections_max_idle_ms: int
    connection_failed_authentication_delay_ms: int
    delegation_token_expiry_check_interval_ms: int
    delegation_token_expiry_time_ms: int
    delegation_token_max_lifetime_ms: int
    delegation_token_secret_key: str | None
    socket_request_max_bytes: int
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_listen_backlog_size: int
    queued_max_request_bytes: int
    queued_max_bytes: int
    queued_max_bytes_per_connection: int
    decompression_max_bytes: int

    def __init__(self, props: Mapping[str, str]) -> None:
        self.props = {key: value for key, value in props.items() if key in BROKER_KEYS}
        self.release = release_named(props.get(AS_VERSION, ""))
        self.feature_levels = _feature_levels(props, self.release)
        self.unknown = {
            key: value for key, value in props.items() if key not in BROKER_KEYS and not key.startswith(FEATURE)
        }
        if "broker.id" in self.props and self.props["broker.id"].strip() != "-1":
            self.props.setdefault("node.id", self.props["broker.id"])
        self.logins: Logins = {}  # of the file that java.security.auth.login.config names
        self.dynamic: dict[str, dict[str, str]] = {}  # by node id as text; "" for all nodes
        given = {key: _given_value(BROKER_KEYS[key], text) for key, text in self.props.items()}
        self._static = {**_defaults(), **given}
        self._values = self._static
        vars(self).update(_named_defaults())  # 272 setattr take a third of a new cluster's settings
        for key, value in given.items():
            setattr(self, key.replace(".", "_"), value)
        self._check_together()

    @classmethod
    def load(cls, props: Mapping[str, str]) -> BrokerConfig:
        """Parse settings. Unknown keys are kept in `unknown`. Errors: ConfigError."""
        return cls(props)

    @property
    def data_dir(self) -> str:
        """The first folder of log.dirs, or log.dir where that is not set."""
        return (self.log_dirs or self.log_dir)[0]

    def value(self, key: str) -> Value:
        """The value of a broker key now."""
        return self._values[key]

    def tell_registry(self, url: str) -> None:
        """Say where the registry is served, to whoever asks for the settings, in all lives of the cluster."""
        self._static["registry.url"] = url  # the copies of one plan share it
        self._values = {**self._values, "registry.url": url}

    def set_dynamic(self, dynamic: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the values set while running."""
        self.dynamic = {node: dict(texts) for node, texts in dynamic.items() if texts}
        if not self.dynamic and self._values is self._static:
            return  # as most stay
        values = dict(self._static)
        for node in ("", str(self._static["node.id"])):
            for key, text in self.dynamic.get(node, {}).items():
                row = BROKER_KEYS.get(key)
                if row is not None and row[4]:
                    with suppress(ConfigError):  # which an older version took; Kafka passes such a one over too
                        values[key] = parse_value(key, row[1], row[3], text)
        for key in {**self._values, **values}:
            if values[key] != self._values[key]:
                setattr(self, key.replace(".", "_"), values[key])
        self._values = values

    def topic_value(self, key: str, overrides: Mapping[str, str]) -> Value:
        """The value of a topic key for a topic with these configs."""
        return self._value_below(TOPIC_KEYS[key], overrides)

    def group_value(self, key: str, overrides: Mapping[str, str]) -> Value:
        """The value of a group key for a group with these configs."""
        return self._value_below(GROUP_KEYS[key], overrides)

    def _value_below(self, row: Row, overrides: Mapping[str, str]) -> Value:
        key, kind, default, rule, broker_key, _ = row
        text = overrides.get(key)
        if text is not None:
            return parse_value(key, kind, rule, text)
        if broker_key:
            return self._in_units(broker_key)
        return None if default is None else parse_value(key, kind, rule, default)

    def _in_units(self, broker_key: str) -> Value:
        for key, factor in UNITS.get(broker_key, ((broker_key, 1),)):
            value = self._values[key]
            if value is not None:
                if not isinstance(value, int) or factor == 1:
                    return value
                return value * factor if value >= 0 else -1
        return None

    def _check_together(self) -> None:
        """Check rules between several keys."""
        for low, high in (
            ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
            ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
            ("group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"),
            ("group.streams.heartbeat.interval.ms", "group.streams.session.timeout.ms"),
            ("group.streams.min.task.offset.interval.ms", "group.streams.task.offset.interval.ms"),
            ("group.streams.num.warmup.replicas", "group.streams.max.warmup.replicas"),
        ):
            least, most = self._static[low], self._static[high]
            if isinstance(least, int) and isinstance(most, int) and least > most:
                raise ConfigError(low, least, f"must not be more than {high} ({most})")
        if self._in_units("log.retention.ms") == 0:
            raise StartRefusedError("log.retention.minutes", NO_AGE)
        url = str(self._static["schema.registry.url"])
        if url and (not url.startswith(("http://", "https://")) or "@" in url):
            reason = "must begin with http:// or https://; a user goes into schema.registry.basic.auth.user.info"
            raise ConfigError("schema.registry.url", url.rpartition("@")[2], reason)
        if self._static["offsets.topic.compression.codec"] not in (0, 1, 2, 3, 4):
            raise ConfigError(
                "offsets.topic.compression.codec",
                format_value(self._static["offsets.topic.compression.codec"]),
                "must be the number of a codec, 0 to 4",
            )


@cache
def _defaults() -> dict[str, Value]:
    """The value of each broker key that is not given: parsed once, for all clusters of the process."""
    return {
        key: None if default is None else parse_value(key, kind, rule, default)
        for key, kind, default, rule, _, _ in BROKER_KEYS.values()
    }


@cache
def _named_defaults() -> dict[str, Value]:
    """The same by the names of attributes."""
    return {key.replace(".", "_"): value for key, value in _defaults().items()}


def _given_value(row: Row, text: str) -> Value:
    key, kind, _, rule, _, _ = row
    value = parse_value(key, kind, rule, text)
    if not value and key in ("listeners", "log.dir", "log.dirs"):
        raise ConfigError(key, text, "must not be empty")
    return value


def _feature_levels(props: Mapping[str, str], release: Release | None) -> dict[str, int]:
    """The levels given by `feature.NAME`, and those of the release that is imitated. Errors: ConfigError."""
    levels = {}
    if release is not None:
        levels = {name: min(release.feature_level(name), top) for name, top in HIGHEST.items() if name not in FIXED}
    for key, text in props.items():
        if key.startswith(FEATURE):
            name = key.removeprefix(FEATURE)
            highest = FIXED.get(name, HIGHEST.get(name, -1))
            if release is not None:
                highest = min(highest, release.features.get(name, (0, 0, 0))[1])
            if not text.strip().isdigit() or int(text) > highest:
                raise ConfigError(
                    key, text, f"must be a level from 0 to {highest}" if highest >= 0 else "unknown feature"
                )
            levels[name] = int(text)
    return levels
