"""One way to change state: what the log holds is written by methods named replay, live and at a start alike.

Read from the source. A hard slot is any attribute of a state class that its VOLATILE set does not name. It may be
written in `__init__`, in methods named replay* (or rebalance*, for the half of a classic group that no record holds),
and in helpers that only those call. Outside the classes nobody writes a hard slot, and nobody but the appenders calls a
replay method.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from source_tree import REPOSITORY, modules, tree_of

# The classes whose state is made from records, and beside VOLATILE the slots that are caches of settings or plumbing
# (`_more`: of the label and More, where a mark needs room).
STATE: dict[str, dict[str, set[str]]] = {
    "broker/coordinator/offsets/columns.py": {"TopicOffsets": {"_more"}, "More": {"seen"}, "Rare": set()},
    "broker/coordinator/offsets/table.py": {"OffsetTable": {"dropped", "_labels"}},
    "broker/coordinator/offsets/pending.py": {"PendingOffsets": set()},
    "broker/coordinator/groups/machine.py": {"GroupMachine": set()},
    "broker/coordinator/groups/classic/group.py": {"ClassicGroup": set()},
    "broker/coordinator/groups/consumer/group.py": {"ConsumerGroup": set()},
    "broker/coordinator/groups/streams/group.py": {"StreamsGroup": set()},
    "broker/coordinator/groups/common/group.py": {"ModernGroup": set()},
    "broker/coordinator/groups/share/group.py": {"ShareGroup": set()},
    "broker/coordinator/share/machine.py": {"ShareStateMachine": set()},
    "broker/coordinator/transactions/machine.py": {"TransactionMachine": set()},
    "broker/cluster/metadata.py": {"ClusterMetadata": set()},
    "broker/registry/state.py": {"RegistryState": set()},
}
# Whoever may call a replay method from outside a state class: they have just appended what is replayed.
APPENDERS = {
    "broker/turn/executor.py": "append, after its log.append",
    "broker/coordinator/written.py": "Records and Marker, called by append",
    "broker/coordinator/offsets/commit_batch.py": "PlainCommit, called by append",
    "broker/coordinator/replay.py": "recovery",
    "broker/coordinator/offsets/commit_run.py": "Commit, called by append",
    "broker/coordinator/offsets/replay_run.py": "commits in columns, recovery",
    "broker/coordinator/offsets/snapshots.py": "images, recovery",
    "broker/coordinator/transactions/written.py": "NextState, called by append",
    "broker/partitions/incoming_batch.py": "ClientBatch and Marker, replayed by turn/executor.py after its log.append",
    "broker/partitions/producer_files.py": "recovery of a partition's producers",
    "broker/shell/registry/store.py": "what was read from the topic `_schemas`",
    "broker/shell/load/schemas.py": "a copy of the registry's state, which tells what would be refused",
    "broker/broker.py": "the image of the metadata log",
}
CHANGERS = {"append", "add", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}
ALLOWED = ("__init__", "replay", "_replay", "rebalance", "_rebalance")


def volatile(node: ast.ClassDef) -> set[str]:
    """The slots that the class names in VOLATILE."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "VOLATILE" and each.value is not None:
            return {key.value for key in each.value.keys if isinstance(key, ast.Constant)}
    return set()


def base_of(node: ast.AST) -> ast.AST:
    """`self.x` of `self.x[key].y`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def writes(function: ast.AST) -> Iterator[tuple[str, str, int]]:
    """(owner, attribute, line) of what a function assigns, deletes or changes by a method of a container."""
    for node in ast.walk(function):
        targets: list[ast.AST] = []
        if isinstance(node, ast.Assign):
            targets = list(node.targets)
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target] if getattr(node, "value", None) is not None else []
        elif isinstance(node, ast.Delete):
            targets = list(node.targets)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGERS:
            targets = [node.func.value]
        for target in [t for each in targets for t in (each.elts if isinstance(each, ast.Tuple) else [each])]:
            found = base_of(target)
            if isinstance(found, ast.Attribute):
                yield ast.unparse(found.value), found.attr, node.lineno


def methods(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}


def callers(node: ast.ClassDef) -> dict[str, set[str]]:
    """Method -> the methods of the class that call it."""
    found: dict[str, set[str]] = {name: set() for name in methods(node)}
    for name, method in methods(node).items():
        for each in ast.walk(method):
            if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self" and each.attr in found:
                found[each.attr].add(name)
    return found


def state_classes() -> Iterator[tuple[Path, ast.ClassDef, set[str]]]:
    for name, kinds in STATE.items():
        path = REPOSITORY / name
        known = {node.name: node for node in tree_of(path).body if isinstance(node, ast.ClassDef)}
        for kind, soft in kinds.items():
            yield path, known[kind], soft | volatile(known[kind])


def test_state_is_written_by_replay_methods_alone():
    wrong = []
    for path, node, soft in state_classes():
        called_by = callers(node)

        def is_allowed(name: str, seen: frozenset[str] = frozenset(), called_by=called_by) -> bool:
            if name.startswith(ALLOWED) or name in seen:
                return True
            by = called_by[name]
            return bool(by) and all(is_allowed(each, seen | {name}) for each in by)

        for name, method in methods(node).items():
            for owner, attribute, line in writes(method):
                if owner == "self" and attribute not in soft and not is_allowed(name):
                    wrong.append(f"{path.relative_to(REPOSITORY)}:{line} {node.name}.{name} writes {attribute}")
    assert not wrong


def test_nobody_outside_writes_the_columns_of_offsets_nor_the_transactions():
    """By name: these attributes exist in the state classes only."""
    hard = {"_rows", "_more", "transactions", "rare"}
    owners = ("columns", "machine", "shard.machine", "table", "group", "self._machine")
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{line} writes {owner}.{attribute}"
        for path in modules("broker").values()
        for owner, attribute, line in writes(tree_of(path))
        if attribute in hard and owner in owners
    ]
    assert not wrong


def test_replay_methods_are_called_by_replay_methods_and_appenders_alone():
    inside = set(STATE) | set(APPENDERS)
    wrong = []
    for path in modules("broker").values():
        name = str(path.relative_to(REPOSITORY))
        if name in inside or name.startswith(("broker/coordinator/groups/", "broker/partitions/producer")):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called = node.func.attr
                if called.startswith("replay") and called != "replays":
                    wrong.append(f"{name}:{node.lineno} calls {ast.unparse(node.func)}")
    assert not wrong
