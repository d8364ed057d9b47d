"""A cluster for a test: arranged as its markers say, verified after it, and shown or kept where the test failed."""

from __future__ import annotations

import os
import sys

import pytest

from momus.kit.plugin_options import option
from momus.kit.words import ARRANGED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from momus.cluster import Cluster, Keeper
    from momus.handle import ClusterHandle
    from momus.kit.process import Broker

FAILED: pytest.StashKey[bool] = pytest.StashKey()
REPORT: pytest.StashKey[str] = pytest.StashKey()
SKIPPED: pytest.StashKey[bool] = pytest.StashKey()  # because a real cluster cannot do what it asks for
RUN: pytest.StashKey[str] = pytest.StashKey()  # the name of this run of the test, if it is not its only one
KEPT: pytest.StashKey[list[str]] = pytest.StashKey()  # the files of its runs


def verified(cluster: Cluster, node: pytest.Item | None, words: Mapping[str, Any]) -> Iterator[Cluster]:
    """A cluster for a test, verified and removed after it, and so are the forks that the test made of it.

    node    the test, if it is for one alone.
    words   what its markers ask for.
    """
    from momus.cluster import Keeper
    from momus.control import BrokerDiedError

    keeper = Keeper()
    if cluster.keeper is not None:
        cluster.keeper.give(cluster)
    cluster.keeper, cluster.verifies = keeper, False
    wrong: list[str] = []
    kept = option(node.config, "keep_failed") if node is not None else ""
    with cluster:
        if kept:
            cluster.record()
        arrange(cluster, words)
        yield cluster
        try:
            wrong = _examined(cluster, node, keeper, kept)
        except BrokerDiedError:  # pytest_runtest_teardown says so
            cluster.keeper, cluster.is_open = None, False
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def _examined(cluster: Cluster, node: pytest.Item | None, keeper: Keeper, kept: str) -> list[str]:
    """After a test: its log and last requests to standard error, its run to a file if it is to be kept.

    Returns a sentence for whatever the test must fail for. Errors: BrokerDiedError.
    """
    if node is not None and cluster.is_open:
        show_last(node, cluster)
    # pytest shows captured output of failed tests only, which is when the log matters.
    sys.stderr.write(cluster.log)
    keeper.close()
    cluster.keeper = None
    wrong = []
    if cluster.is_open:  # a run that is to be kept is recorded to its end
        wrong = cluster.unverified() if kept else cluster.close_verified()
    wrong += keeper.wrong
    if node is not None and node.stash.get(SKIPPED, False):
        wrong = []
    if kept and node is not None and cluster.is_open and (bool(wrong) or node.stash.get(FAILED, False)):
        from momus.kit.kept_run import keep_run  # 5 ms

        name = node.stash.get(RUN, node.nodeid)
        path = keep_run(kept, name, cluster, "\n".join([node.stash.get(REPORT, ""), *wrong]))
        node.stash.setdefault(KEPT, []).append(str(path))
        from shlex import quote  # 2 ms

        sys.stderr.write(f"this run is kept; play it again by: momus replay {quote(str(path))}\n")
    return wrong


def arrange(cluster: Cluster | Broker, words: Mapping[str, Any]) -> None:
    """Make the topics, data and faults that the markers of a test ask for. Before a real cluster names are those that
    `cluster.name` gives. Errors: ControlError."""
    for name, partitions in words.get("topics", {}).items():
        cluster.create_topic(cluster.name(name), partitions)
    if "load" in words:
        cluster.load(words["load"])
    faults = words.get("faults", ())
    if cluster.name.run:
        faults = [{key: _named(cluster, key, value) for key, value in fault.items()} for fault in faults]
    cluster.faults.load(faults)


def _named(cluster: Cluster | Broker, key: str, value: Any) -> Any:
    is_name = key in ("topic", "group", "transactional_id") and isinstance(value, str) and not set(value) & set("*?[")
    return cluster.name(value) if is_name else value


def of_marker(words: Mapping[str, Any]) -> dict[str, Any]:
    """The words for whoever makes the cluster."""
    return {key: value for key, value in words.items() if key not in ARRANGED}


def show_last(node: pytest.Item, cluster: ClusterHandle) -> None:
    """In the report of a failed test: what its cluster was asked last."""
    if node.stash.get(FAILED, False):
        sys.stderr.write(f"the last requests:\n{cluster.journal.last() or 'none'}\n")


def marked_words(node: pytest.Item | pytest.Collector) -> dict[str, Any]:
    """What the markers of a test ask for; the closest to the test wins."""
    words: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers("momus"))):
        words.update(marker.kwargs)
    if isinstance(words.get("load"), (str, os.PathLike)):
        words["load"] = os.path.join(node.path.parent, words["load"])  # relative to the test's file
    return words
