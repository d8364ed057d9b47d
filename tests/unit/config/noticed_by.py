"""Which test notices that a setting is ignored: each setting that the broker obeys has one, by its file and name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from noticed_by_security import SECURITY_NOTICED_BY

# A file of tests, a test in it that fails when a setting is ignored, and the keys that it is about.
_NOTICED_BY: Final[Mapping[str, Mapping[str, str]]] = {
    "tests/fuzz/test_fuzz_clients.py": {
        "test_idle_connections_are_closed_and_busy_ones_stay": """
            connections.max.idle.ms
        """,
    },
    "tests/unit/coordinator/groups/consumer/test_heartbeat_refused.py": {
        "test_full_group_takes_nobody_else": """
            group.consumer.max.size
        """,
    },
    "tests/unit/coordinator/groups/consumer/test_migration.py": {
        "test_policy_decides_over_the_upgrade": """
            group.consumer.migration.policy
        """,
    },
    "tests/unit/coordinator/groups/consumer/test_switched_off.py": {
        "test_protocol_that_is_not_listed_is_unsupported": """
            group.coordinator.rebalance.protocols
        """,
    },
    "tests/unit/upkeep/test_compaction_lag.py": {
        "test_log_that_is_hardly_dirty_is_cleaned_after_the_lag": """
            cleanup.policy max.compaction.lag.ms
        """,
    },
    "tests/unit/wire/test_connection_frames.py": {
        "test_connections_above_max_connections_are_turned_away_with_one_line_each": """
            max.connections
        """,
        "test_frame_above_socket_request_max_bytes_is_refused_even_if_it_came_whole": """
            socket.request.max.bytes
        """,
    },
    "tests/unit/cluster/test_replicas_fail.py": {
        "test_below_min_insync_replicas_acks_all_is_refused_and_acks_1_is_not_readable": """
            min.insync.replicas
        """,
        "test_unclean_leader_has_lost_what_it_missed_and_an_idempotent_producer_goes_on": """
            unclean.leader.election.enable
        """,
    },
    "tests/unit/cluster/test_lagging_follower.py": {
        "test_lag_time_of_the_setting_is_waited_for": """
            replica.lag.time.max.ms
        """,
    },
    "tests/unit/turn/test_forced_flush.py": {
        "test_flush_interval_of_the_scheduler_is_the_default_of_flush_ms": """
            log.flush.scheduler.interval.ms
        """,
        "test_log_is_synced_before_the_reply_when_flush_messages_are_not": """
            flush.messages
        """,
        "test_log_is_synced_when_its_records_are_flush_ms_old": """
            flush.ms
        """,
    },
    "tests/unit/handlers/test_offset_versions.py": {
        "test_metadata_limit_is_the_broker_s_setting": """
            offset.metadata.max.bytes
        """,
    },
    "tests/unit/handlers/test_classic_group_delays.py": {
        "test_full_group_turns_new_members_away": """
            group.max.size
        """,
    },
    "tests/unit/handlers/test_metadata.py": {
        "test_metadata_makes_internal_topic_as_the_broker_would": """
            transaction.state.log.num.partitions
        """,
        "test_metadata_tells_nodes_controller_and_cluster": """
            broker.rack
        """,
        "test_metadata_without_auto_creation_answers_unknown": """
            auto.create.topics.enable
        """,
    },
    "tests/unit/handlers/test_topics.py": {
        "test_create_defaults_are_the_brokers": """
            default.replication.factor num.partitions
        """,
        "test_create_refuses_with_kafkas_code": """
            remote.storage.enable
        """,
        "test_delete_switched_off_is_told": """
            delete.topic.enable
        """,
    },
    "tests/unit/cluster/test_cluster_metadata.py": {
        "test_values_of_topics_are_cached_until_something_changes": """
            internal.segment.bytes
        """,
    },
    "tests/unit/config/test_drop_in_settings.py": {
        "test_listeners_of_controllers_are_not_opened": """
            controller.listener.names
        """,
    },
    "tests/unit/cluster/test_listeners.py": {
        "test_listen_keeps_the_advertised_address": """
            advertised.listeners
        """,
        "test_listen_takes_the_place_of_the_only_listener": """
            listeners
        """,
        "test_map_gives_a_listener_its_protocol": """
            listener.security.protocol.map
        """,
    },
    "tests/unit/config/test_settings_obeyed.py": {
        "test_log_with_a_larger_record_is_not_cleaned_nor_looked_up_by_time": """
            max.decompressed.message.bytes
        """,
        "test_broker_answers_under_the_node_id_that_was_set": """
            node.id
        """,
        "test_broker_key_is_the_default_of_its_topic_key": """
            log.cleaner.delete.retention.ms log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio
            log.cleaner.min.compaction.lag.ms log.cleanup.policy log.flush.interval.messages log.flush.interval.ms
            log.index.interval.bytes log.index.size.max.bytes log.message.timestamp.after.max.ms
            log.message.timestamp.before.max.ms log.message.timestamp.type log.retention.bytes log.retention.ms
            log.roll.ms log.segment.bytes message.max.bytes
        """,
        "test_cleaner_looks_again_after_its_backoff": """
            log.cleaner.backoff.ms
        """,
        "test_cleaner_that_is_disabled_cleans_nothing": """
            log.cleaner.enable
        """,
        "test_coarser_unit_counts_where_the_finer_is_not_set": """
            log.retention.hours log.retention.minutes log.roll.hours
        """,
        "test_description_of_partitions_is_cut_at_the_limit": """
            max.request.partition.size.limit
        """,
        "test_directory_and_older_name_of_the_node_id_are_read": """
            broker.id log.dir log.dirs
        """,
        "test_fetch_sessions_need_a_slot": """
            max.incremental.fetch.session.cache.slots
        """,
        "test_internal_topics_have_the_replication_factor_that_was_set": """
            offsets.topic.replication.factor transaction.state.log.replication.factor
        """,
        "test_internal_topics_have_the_segment_size_that_was_set": """
            offsets.topic.segment.bytes transaction.state.log.segment.bytes
        """,
        "test_offsets_expire_with_the_check_after_their_retention": """
            offsets.retention.check.interval.ms offsets.retention.minutes
        """,
        "test_offsets_topic_has_the_partitions_that_were_set": """
            offsets.topic.num.partitions
        """,
        "test_recovery_points_are_written_after_their_interval": """
            log.flush.offset.checkpoint.interval.ms
        """,
        "test_retention_looks_again_after_its_interval": """
            log.retention.check.interval.ms
        """,
        "test_topic_key_reaches_its_log": """
            delete.retention.ms index.interval.bytes max.message.bytes min.cleanable.dirty.ratio
            min.compaction.lag.ms retention.bytes retention.ms segment.bytes segment.index.bytes segment.ms
        """,
        "test_transaction_timeout_is_bounded": """
            transaction.max.timeout.ms
        """,
        "test_transactional_ids_expire_with_the_check_after_their_expiration": """
            transaction.remove.expired.transaction.cleanup.interval.ms transactional.id.expiration.ms
        """,
    },
    "tests/unit/config/test_group_settings_obeyed.py": {
        "test_assignor_that_is_not_listed_is_not_used": """
            group.consumer.assignors
        """,
        "test_broker_key_is_the_default_of_its_group_key": """
            group.consumer.assignment.interval.ms group.consumer.heartbeat.interval.ms
            group.consumer.session.timeout.ms group.streams.assignment.interval.ms
            group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
            group.streams.num.standby.replicas group.streams.session.timeout.ms
            group.streams.acceptable.recovery.lag group.streams.rack.aware.assignment.tags
            group.streams.task.offset.interval.ms
            group.share.assignment.interval.ms group.share.delivery.count.limit group.share.heartbeat.interval.ms
            group.share.partition.max.record.locks group.share.record.lock.duration.ms group.share.session.timeout.ms
        """,
        "test_first_rebalance_of_a_classic_group_waits_for_more_members": """
            group.initial.rebalance.delay.ms
        """,
        "test_patterns_of_a_consumer_group_are_resolved_again_after_the_interval": """
            group.consumer.regex.refresh.interval.ms
        """,
        "test_session_timeout_of_classic_members_is_bounded": """
            group.max.session.timeout.ms group.min.session.timeout.ms
        """,
        "test_settings_of_a_group_lie_within_the_brokers_bounds": """
            group.consumer.max.assignment.interval.ms group.consumer.max.heartbeat.interval.ms
            group.consumer.max.session.timeout.ms group.consumer.min.assignment.interval.ms
            group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
            group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms
            group.streams.max.session.timeout.ms group.streams.min.assignment.interval.ms
            group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
            group.share.max.assignment.interval.ms group.share.max.heartbeat.interval.ms
            group.share.max.session.timeout.ms group.share.min.assignment.interval.ms
            group.share.min.heartbeat.interval.ms group.share.min.session.timeout.ms
        """,
        "test_deliveries_locks_and_records_in_flight_of_a_share_group_are_bounded": """
            group.share.max.delivery.count.limit group.share.max.partition.max.record.locks
            group.share.max.record.lock.duration.ms group.share.min.delivery.count.limit
            group.share.min.partition.max.record.locks group.share.min.record.lock.duration.ms
        """,
        "test_broker_does_not_start_with_an_assignor_that_is_a_java_class": """
            group.streams.assignors
        """,
        "test_numbers_of_a_streams_group_are_bounded": """
            group.streams.max.standby.replicas group.streams.max.warmup.replicas
            group.streams.min.task.offset.interval.ms
        """,
    },
    "tests/unit/partitions/test_append.py": {
        "test_log_append_time_rewrites_time_attribute_and_crc": """
            message.timestamp.type
        """,
        "test_timestamp_limits_name_the_records_outside": """
            message.timestamp.after.max.ms message.timestamp.before.max.ms
        """,
    },
    "tests/unit/partitions/test_cleaned_transactions.py": {
        "test_batches_of_expired_producers_go": """
            producer.id.expiration.ms
        """,
    },
    "tests/unit/partitions/test_compression_levels.py": {
        "test_higher_level_stores_fewer_bytes": """
            compression.gzip.level compression.lz4.level compression.type compression.zstd.level
        """,
    },
    "tests/unit/partitions/test_fetch.py": {
        "test_broker_limit_caps_the_request": """
            fetch.max.bytes
        """,
    },
    "tests/unit/coordinator/groups/share/test_share_heartbeat.py": {
        "test_full_group_takes_nobody_else": """
            group.share.max.size
        """,
        "test_state_that_was_not_confirmed_is_asked_for_again_after_the_interval": """
            group.share.initialize.retry.interval.ms
        """,
    },
    "tests/unit/coordinator/share/test_dead_letters.py": {
        "test_queue_is_made_when_it_is_first_needed_with_the_settings_of_kafka": """
            errors.deadletterqueue.auto.create.topics.enable
        """,
        "test_without_a_prefix_every_name_is_good": """
            errors.deadletterqueue.topic.name.prefix
        """,
    },
    "tests/unit/coordinator/share/test_dead_letters_refused.py": {
        "test_queue_that_may_not_be_written_to_gets_nothing_and_the_log_says_why": """
            errors.deadletterqueue.group.enable
        """,
    },
    "tests/unit/coordinator/share/test_share_sessions.py": {
        "test_too_many_sessions_are_refused_after_the_wait": """
            group.share.max.share.sessions
        """,
    },
    "tests/unit/coordinator/share/test_share_state.py": {
        "test_idle_state_is_written_anew_after_the_interval": """
            share.coordinator.cold.partition.snapshot.interval.ms
        """,
        "test_log_is_pruned_up_to_the_oldest_snapshot_after_the_interval": """
            share.coordinator.state.topic.prune.interval.ms
        """,
        "test_snapshot_comes_after_as_many_updates_as_the_setting_says": """
            share.coordinator.snapshot.update.records.per.snapshot
        """,
        "test_topic_has_the_settings_that_were_set": """
            share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions
            share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes
        """,
    },
    "tests/unit/coordinator/groups/streams/test_streams_static.py": {
        "test_full_group_takes_its_own_members_again_and_who_comes_for_a_known_instance": """
            group.streams.max.size
        """,
    },
    "tests/unit/coordinator/transactions/test_pending_offsets.py": {
        "test_verification_can_be_turned_off": """
            transaction.partition.verification.enable
        """,
    },
}

NOTICED_BY: Final[Mapping[str, Mapping[str, str]]] = {**_NOTICED_BY, **SECURITY_NOTICED_BY}
