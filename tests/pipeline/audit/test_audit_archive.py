"""An archive is audited as the logs are that it was made of, even when these are gone; what it lacks makes doubts."""

from __future__ import annotations

import shutil
from typing import Any, NamedTuple

import pytest
from archived import archived, contents, logs_of
from audit_fault_kit import CO
from made_logs import Logs
from test_audit_faults import CASES

from momus import Broker
from pipeline.audit.directory import audit_of
from pipeline.demo.traffic import Traffic
from pipeline.jobs.audit import summary

pytestmark = pytest.mark.timeout(900)
CONFIG = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
INTERNAL = {CO, "__transaction_state"}


class Made(NamedTuple):
    """What was written, and what audits make of it: of the logs, and of two archives when the logs were gone."""

    wanted: list[tuple[Any, ...]]
    logs: dict[str, list[Any]]
    whole: dict[str, list[Any]]
    internal: dict[str, list[Any]]
    told: list[str]


@pytest.fixture(scope="module")
def made(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Transactions, groups and zombies of real clients, and every fault behind them."""
    root = tmp_path_factory.mktemp("archived")
    data = root / "data"
    with Broker(data_dir=data, config=CONFIG) as broker:
        traffic = Traffic(broker.bootstrap_servers)
        while not traffic.run(4.0)["transactions aborted"]:
            continue
    logs = logs_of(spark, data)
    faults = [case(logs) for case in CASES]
    of_logs = contents(audit_of(spark, str(data)))
    whole = archived(spark, data, root / "whole", "--topics", "*", "--max-bytes", "200000")
    internal = archived(spark, data, root / "internal")
    shutil.rmtree(data)
    of_internal = audit_of(spark, str(internal))
    return Made(
        sorted((fault.kind, fault.log, fault.offset) for fault in faults if fault.kind),
        of_logs,
        contents(audit_of(spark, str(whole))),
        contents(of_internal),
        summary(of_internal, 0),
    )


def places(rows: list[Any]) -> list[tuple[Any, ...]]:
    return sorted((row["kind"], row["log"], row["offset"]) for row in rows)


@pytest.mark.long
def test_audit_of_an_archive_says_what_that_of_the_logs_said(made):
    assert places(made.logs["findings"]) == made.wanted
    reasons = [(lacking.pop("reason"), told.pop("reason")) for lacking, told in zip(*gaps(made), strict=True)]
    assert reasons == [("removed", "before")] * 2  # the two logs whose numbers begin below their wrap
    assert made.whole == made.logs
    assert len([row for row in made.logs["transactions"] if row["markers"] and row["data"] and row["offsets"]]) > 3


def gaps(made: Made) -> tuple[list[Any], list[Any]]:
    return made.logs["gaps"], made.whole["gaps"]


@pytest.mark.long
def test_audit_of_an_archive_without_topics_finds_only_what_it_has(made):
    """Of the other logs nothing is found, and their transactions are in doubt, not in order."""
    inside = [place for place in made.wanted if place[1].rpartition("-")[0] in INTERNAL]
    unseen = [place for place in inside if place[0] == "transaction-without-marker"]
    assert places(made.internal["findings"]) == [place for place in inside if place not in unseen]
    assert unseen
    doubts = {row["kind"]: row["undecided"] for row in made.internal["doubts"]}
    named = {
        (row["transactional_id"], each["topic"], each["partition"])
        for row in made.internal["transactions"]
        if row["state"].startswith("Complete")
        for each in row["partitions"] or ()
        if each["topic"] not in INTERNAL
    }
    assert set(doubts) == {"transaction-without-marker"}
    assert doubts["transaction-without-marker"] >= len(named) > len(unseen)
    absent = {row["log"] for row in made.internal["gaps"] if row["reason"] == "absent"}
    assert {f"{topic}-{partition}" for _, topic, partition in named} <= absent
    assert any(line.startswith("coverage: nomarker-0 is named by transactions but is not there") for line in made.told)


@pytest.mark.long
def test_audit_of_an_archive_with_a_topic_made_again_decides_nothing_about_it(spark, tmp_path):
    logs = Logs(tmp_path / "data")
    logs.data("again-0", 5, pid=1, epoch=0, sequence=0)
    logs.data("again-0", 5, pid=1, epoch=0, sequence=5)
    logs.data("other-0", 5, pid=1, epoch=0, sequence=3)
    archived(spark, logs.directory, tmp_path / "archive", "--topics", "*")
    shutil.rmtree(logs.directory / "again-0")
    logs.ends["again-0"] = 0
    logs.data("again-0", 4, pid=2, epoch=0, sequence=3)
    logs.data("again-0", 1, pid=2, epoch=0, sequence=1)
    archived(spark, logs.directory, tmp_path / "archive", "--topics", "*")
    found = audit_of(spark, str(tmp_path / "archive"))
    assert [(row["log"], row["kind"]) for row in found.findings.collect()] == [("other-0", "missing-sequence")]
    assert {row["log"] for row in found.doubts.collect()} == {"again-0"}
    assert {row["log"]: row["renewed"] for row in found.coverage.collect()} == {"again-0": True, "other-0": False}
    assert any(line.startswith("coverage: again-0 is archived twice") for line in summary(found, 1, archived=True))


@pytest.mark.long
def test_audit_of_an_archive_in_the_making_waits_for_the_view_that_is_behind(spark, tmp_path):
    logs = Logs(tmp_path / "data")
    logs.transaction("tx", 1, 0, "d-0")
    early = archived(spark, logs.directory, tmp_path / "early", "--topics", "*")
    logs.transaction("tx", 1, 0, "d-0", sequence=2)
    late = archived(spark, logs.directory, tmp_path / "late", "--topics", "*")
    shutil.rmtree(late / "raw")
    shutil.copytree(early / "raw", late / "raw", ignore=shutil.ignore_patterns("_spark_metadata"))
    believed = audit_of(spark, str(late))  # it says that it has the data as well
    assert [row["kind"] for row in believed.findings.collect()] == ["transaction-without-marker"]
    shutil.copy(early / "_settled.json", late / "_settled.json")
    made = audit_of(spark, str(late))
    assert made.findings.collect() == []
    assert [row["kind"] for row in made.doubts.collect()] == ["transaction-without-marker"]
