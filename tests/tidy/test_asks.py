"""Questions to a cluster stand in one place: what was written by several hands before does not come back."""

from __future__ import annotations

import ast
from pathlib import Path

from source_tree import PACKAGES, modules, tree_of

# Who looks at the kind of a marker: the side that writes logs, replays them or serves them, the page's words for a
# marker, and the one rule of the readers.
MARKERS = {
    "broker.asks.records",
    "broker.cluster.metadata_image",
    "broker.coordinator.replay",
    "broker.coordinator.share.reader",
    "broker.partitions.producer_files",
    "broker.shell.page.texts",
    "momus.client.offset_log",
    "protocol.record_batch",
    "storage.cleaning.compaction_plan",
}


def test_rule_for_records_of_aborted_transactions_stands_once():
    found = {module for module, path in modules(*PACKAGES).items() if "control_type" in _names(path)}
    assert found == MARKERS


def _names(path: Path) -> set[str]:
    tree = tree_of(path)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    }
