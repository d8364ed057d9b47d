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


# Requests that more than one file makes, outside of the rooms that serve them or write them down, and why.
SEVERAL = {
    "ApiVersionsRequest": "each way of connecting asks first which versions there are",
    "AlterUserScramCredentialsRequest": "kafka-configs does, and the control plane for users that it has named",
    "DescribeUserScramCredentialsRequest": "kafka-configs tells of one user, a dump of all",
    "LeaveGroupRequest": "a console consumer is a member itself, and leaves; others are removed",
    "MetadataRequest": "an ask finds leaders by it, and asks about topics too",
    "OffsetCommitRequest": "a console consumer commits as a member, others as a group without any",
}
SERVING = (
    "broker.authorization",
    "broker.coordinator",
    "broker.faults",
    "broker.handlers",
    "broker.journal",
    "broker.requests",
    "broker.wire",
)


def test_each_request_to_a_cluster_is_made_in_one_file():
    makers: dict[str, set[str]] = {}
    for module, path in modules("broker", "momus", "pipeline").items():
        if not module.startswith(SERVING):
            for node in ast.walk(tree_of(path)):
                if isinstance(node, ast.Call) and (name := _called(node)).endswith("Request") and name != "Request":
                    makers.setdefault(name, set()).add(module)
    several = {name: found for name, found in makers.items() if len(found) > 1}
    assert several.keys() == SEVERAL.keys(), several
    assert len(makers) > 25


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_rule_for_records_of_aborted_transactions_stands_once():
    found = {module for module, path in modules(*PACKAGES).items() if "control_type" in _names(path)}
    assert found == MARKERS


def _names(path: Path) -> set[str]:
    tree = tree_of(path)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    }
