"""Which tests should notice a mutant of which source: those that fail soonest come first."""

from __future__ import annotations

SERVED = ["tests/unit/requests"]
SHORTCUTS = [*SERVED, "tests/property/test_shortcuts.py"]
TRANSACTIONS = [
    "tests/unit/coordinator/transactions",
    "tests/unit/requests/test_txn_repeats.py",
    "tests/unit/coordinator/offsets/test_pending_images.py",
    "tests/property/test_transactions_model.py",
]
OFFSETS = [
    "tests/property/test_offset_columns.py",
    "tests/unit/coordinator/offsets/test_commit_parts.py",
    "tests/unit/coordinator/offsets/test_commit_templates.py",
    "tests/unit/coordinator/offsets/test_rows_room.py",
    "tests/unit/coordinator/offsets/test_commits_with_metadata.py",
    "tests/property/test_commit_path_table.py",
    "tests/unit/coordinator/offsets/test_images.py",
    "tests/unit/coordinator/offsets/test_offsets_of_remade_topics.py",
    "tests/unit/coordinator/offsets/test_pending_images.py",
    "tests/unit/coordinator/transactions/test_pending_offsets.py",
    "tests/unit/coordinator/transactions/test_pending_offsets_model.py",
    "tests/property/test_commit_path.py",
    "tests/unit/handlers/test_expected_offsets.py",
    "tests/unit/requests/test_commit_path_scripts.py",
    "tests/crash/test_commit_over_batches.py",
    "tests/unit/base",
    "tests/unit/coordinator/groups/classic",
    "tests/unit/coordinator/groups/test_shard.py",
    "tests/unit/coordinator/test_loading.py",
]
STORAGE = [
    "tests/unit/storage",
    "tests/property/test_log_against_model.py",
    "tests/crash/test_log_failures.py",
    "tests/crash/test_log_torn.py",
    "tests/unit/turn/test_durability.py",
]
FETCHES = [
    "tests/property/test_consume_path.py",
    "tests/unit/turn/test_fetch_before_sync.py",
    "tests/unit/requests/test_parked_shortcut_fetch.py",
    "tests/unit/coordinator/transactions/test_aborted_lists.py",
]
COMMITS = [
    "tests/property/test_commit_path.py",
    "tests/property/test_commit_path_table.py",
    "tests/unit/requests/test_commit_path_scripts.py",
]
PRODUCERS = [
    "tests/unit/partitions/test_producers.py",
    "tests/unit/partitions/test_producer_sequences.py",
    "tests/unit/partitions/test_producer_limits.py",
    "tests/unit/partitions/test_producer_table.py",
    "tests/property/test_producers_model.py",
    "tests/unit/partitions",
]
REGISTRY = ["tests/unit/registry", "tests/unit/shell/test_registry_writes.py"]
# Source (a glob) -> the tests that should notice a mutant in it, those that fail soonest first. The first match counts.
TARGETS: dict[str, list[str]] = {
    "broker/coordinator/groups/common/assignment_epoch_checks.py": [
        "tests/property/test_assignment_epoch_checks.py",
        "tests/unit/coordinator/groups/consumer/test_fencing_vectors.py",
    ],
    "broker/coordinator/groups/classic/commit_checks.py": [
        "tests/unit/coordinator/groups/classic/test_commit_checks.py",
        "tests/unit/coordinator/transactions/test_txn_offset_generation.py",
    ],
    "broker/coordinator/offsets/*.py": OFFSETS + SHORTCUTS,
    "broker/coordinator/transactions/*.py": [
        *TRANSACTIONS,
        *SHORTCUTS,
        "tests/unit/partitions/test_transaction_gate.py",
        "tests/unit/coordinator/test_short_coordinators.py",
    ],
    "storage/cleaning/compaction*.py": STORAGE,
    "storage/segments/recovery.py": STORAGE,
    "storage/log/log.py": STORAGE,
    "storage/segments/log_writer.py": STORAGE,
    "storage/segments/segment.py": STORAGE,
    "storage/segments/spans.py": [*STORAGE, "tests/crash/test_commit_over_batches.py"],
    "broker/requests/share_fetch*.py": ["tests/unit/coordinator/share", "tests/property/test_share_path.py"],
    "broker/requests/fetch*.py": [*FETCHES, "tests/unit/partitions", *SERVED, *SHORTCUTS],
    "broker/requests/acks_wait.py": ["tests/unit/cluster/test_lagging_follower.py", "tests/unit/cluster", *SERVED],
    "broker/requests/offset*.py": [
        "tests/unit/handlers/test_offset_versions.py",
        *SERVED,
        *COMMITS,
        "tests/property/test_offset_fetch_moved.py",
        "tests/unit/handlers",
        *SHORTCUTS,
    ],
    "broker/requests/expected_offsets.py": ["tests/unit/handlers/test_expected_offsets.py", *COMMITS],
    "broker/requests/produce*.py": [
        *SERVED,
        "tests/unit/cluster/test_lagging_follower.py",
        "tests/property/test_producer_runs.py",
        *SHORTCUTS,
        *PRODUCERS,
    ],
    "broker/requests/*txn*.py": [*TRANSACTIONS, *SERVED, *SHORTCUTS, *COMMITS, *FETCHES],
    "broker/requests/*.py": [*SERVED, *TRANSACTIONS, *SHORTCUTS, *COMMITS, *FETCHES],
    "protocol/shape.py": ["tests/unit/protocol/test_shape.py", *SHORTCUTS, "tests/property/test_straight_path.py"],
    "broker/partitions/producer*s.py": PRODUCERS,
    "broker/partitions/producer_table.py": PRODUCERS,
    "broker/registry/formats/*.py": REGISTRY,
    "broker/registry/formats/*/*.py": REGISTRY,
    "broker/registry/registering/*.py": REGISTRY,
    "broker/registry/*.py": REGISTRY,
    "broker/proxy/*.py": ["tests/unit/proxy", "tests/e2e/proxy/test_proxy.py"],
    "broker/load/*.py": ["tests/unit/load", "tests/unit/momus", "tests/e2e/load/test_load.py"],
    "broker/shell/control/large_json.py": ["tests/unit/shell/test_large_json.py"],
    "broker/shell/control/http*.py": ["tests/unit/shell", "tests/conformance/test_http_as_others.py"],
    "broker/security/*.py": ["tests/unit/security"],
}
NOT_MEANT = {"broker/partitions/producer_snapshots.py"}  # a file format, with tests of its own
