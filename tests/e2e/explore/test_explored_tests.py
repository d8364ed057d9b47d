"""`pytest --momus-explore` in a project of its own: what it runs, what it finds, and what it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from xml.etree import ElementTree

import pytest

SERVICE = """
from __future__ import annotations
import pytest
from confluent_kafka import Consumer, KafkaException

COUNT = 3


def work(cluster, *, is_careful, group="billing"):
    # Commits each order. A careful one reads on until all is committed; the other gives a refusal up.
    consumer = Consumer({
        **cluster.client_config("confluent"), "group.id": group, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "heartbeat.interval.ms": 100, "fetch.wait.max.ms": 50,
    })
    consumer.subscribe(["orders"])
    seen = {}
    try:
        while True:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                seen[message.offset()] = message.value()
                try:
                    consumer.commit(message, asynchronous=False)
                except KafkaException:
                    pass
            if len(seen) == COUNT and not is_careful:
                return seen
            if is_careful and cluster.committed(group) == {("orders", 0): COUNT}:
                return seen
    finally:
        consumer.close()


@pytest.fixture
def cluster(kafka_broker):
    kafka_broker.create_topic("orders", 1)
    kafka_broker.produce("orders", "1", "2", "3")
    return kafka_broker
"""
TESTS = """
import time, unittest, uuid
import pytest
from service import COUNT, cluster, work
from momus import Broker


def test_gives_up(cluster):
    work(cluster, is_careful=False)
    assert cluster.committed("billing") == {("orders", 0): COUNT}


def test_careful(cluster):
    assert len(work(cluster, is_careful=True)) == COUNT


def test_hangs(cluster):
    work(cluster, is_careful=False)
    while cluster.committed("billing") != {("orders", 0): COUNT}:
        time.sleep(0.01)


class TestOld(unittest.TestCase):
    def setUp(self):
        self.broker = Broker().start()
        self.addCleanup(self.broker.close)
        self.broker.create_topic("orders", 1)
        self.broker.produce("orders", "1", "2", "3")

    def test_gives_up(self):
        work(self.broker, is_careful=False)
        self.assertEqual(self.broker.committed("billing"), {("orders", 0): COUNT})


@pytest.mark.momus_explore(what="errors", apis=["OffsetCommit"])
def test_narrow(cluster):
    work(cluster, is_careful=False)


@pytest.mark.momus_explore(skip="it is slow")
def test_skipped(cluster):
    work(cluster, is_careful=False)


def test_without_a_cluster():
    pass


@pytest.mark.momus_explore(what="group", apis=["OffsetCommit"])
def test_drawn_names(cluster):
    work(cluster, is_careful=False, group=f"billing-{uuid.uuid4()}")


def test_own_fault(cluster):
    cluster.faults.inject_error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", trigger="once")
    work(cluster, is_careful=True)


@pytest.mark.momus_explore(what="errors", apis=["FindCoordinator"])
def test_own_fault_marked(cluster):
    cluster.faults.inject_error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", trigger="once")
    work(cluster, is_careful=True)


def test_fails(cluster):
    assert work(cluster, is_careful=False) == "nothing"


def test_of_the_session(kafka_broker_session):
    kafka_broker_session.create_topic("orders", 1)
    kafka_broker_session.produce("orders", "1", "2", "3")
    assert len(work(kafka_broker_session, is_careful=True)) == COUNT


def test_twice_in_one(cluster):
    other = cluster.fork()
    work(cluster, is_careful=False)
    work(other, is_careful=False)
    assert other.committed("billing") == {("orders", 0): COUNT}
    other.close()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "service.py").write_text(SERVICE)
    (folder / "test_it.py").write_text(TESTS)
    return folder


def explore(project, *words, report="found.json"):
    """Run pytest there. Returns its exit code, its output, and what was found of each test."""
    path = project / report
    path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, "--momus-explore-report", str(path)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, env=environment, check=False)
    found = {}
    if path.exists() and path.suffix == ".json":
        found = {each["test"].partition("::")[2]: each for each in json.loads(path.read_text())}
    return ran.returncode, ran.stdout + ran.stderr, found


def wrong(told):
    return [run["schedule"] for run in told["runs"] if run["verdict"] in ("failed", "hung", "left wrong")]


EXPELLED = "OffsetCommit[group=billing]#3 make_event expel_member before"


def test_refused_commit_that_is_given_up_is_found_and_happens_again_by_one_line(project):
    code, output, found = explore(
        project, "test_it.py::test_gives_up", "--momus-explore", "all", "--momus-explore-what", "group"
    )
    told = found["test_gives_up"]
    assert (code, told["note"], told["left_out"]) == (1, "", 0)
    assert EXPELLED in wrong(told)
    assert len(told["runs"]) == told["planned"]
    (again,) = {
        line.partition("pytest ")[2]
        for line in output.splitlines()
        if line.strip().startswith("failed: pytest ") and EXPELLED in line
    }
    test, schedule = re.fullmatch(r"(\S+) --momus-schedule '(.*)'", again).groups()
    code, output, _ = explore(project, test, "--momus-schedule", schedule)
    assert code == 1
    assert f"{EXPELLED}: made" in output


def test_careful_service_survives_what_may_happen_to_its_group(project):
    code, output, found = explore(
        project, "test_it.py::test_careful", "--momus-explore", "all", "--momus-explore-what", "group,errors"
    )
    assert (code, wrong(found["test_careful"])) == (0, []), output


def test_run_that_hangs_is_ended_and_says_where_it_waits(project):
    code, _, found = explore(
        project, "-x", "test_it.py::test_hangs", "--momus-explore", "8", "--momus-explore-what", "group"
    )
    told = found["test_hangs"]
    hung = [run for run in told["runs"] if run["verdict"] == "hung"]
    assert code == 1
    assert "in test_hangs" in hung[0]["why"]
    assert "OffsetCommit v" in hung[0]["why"]
    assert "group billing is " in hung[0]["why"]
    assert "/_pytest/" not in hung[0]["why"]
    assert len(told["runs"]) < told["planned"]  # -x


def test_unittest_is_explored_too(project):
    code, _, found = explore(project, "test_it.py::TestOld", "--momus-explore", "4", "--momus-explore-what", "group")
    assert code == 1
    assert EXPELLED in wrong(found["TestOld::test_gives_up"])
    assert found["TestOld::test_gives_up"]["left_out"] == found["TestOld::test_gives_up"]["planned"] - 4


def test_markers_narrow_and_skip_and_others_are_named(project):
    words = ["test_narrow", "test_skipped", "test_without_a_cluster", "test_fails", "test_of_the_session"]
    words += ["test_own_fault", "test_own_fault_marked"]
    code, output, found = explore(project, *(f"test_it.py::{each}" for each in words), "--momus-explore", "all")
    assert code == 1
    assert {run["schedule"].partition("#")[0] for run in found["test_narrow"]["runs"]} == {
        "OffsetCommit[group=billing]"
    }
    assert {run["schedule"].split()[1] for run in found["test_narrow"]["runs"]} == {"inject_error"}
    assert found["test_own_fault_marked"]["runs"]
    assert {name: found[name]["note"] for name in words[1:-1]} == {
        "test_skipped": "skipped: it is slow",
        "test_without_a_cluster": "no cluster of momus",
        "test_fails": "fails without a fault",
        "test_of_the_session": "its cluster is shared by the session",
        "test_own_fault": "it sets faults of its own, and has no marker momus_explore",
    }
    assert "test_of_the_session: not explored: its cluster is shared by the session" in output
    assert re.search(r"1 failed, 6 passed", output)


def test_second_cluster_of_a_test_is_explored_by_its_number(project):
    code, _, found = explore(
        project, "test_it.py::test_twice_in_one", "--momus-explore", "all", "--momus-explore-what", "group"
    )
    assert code == 1
    assert f"2/{EXPELLED}" in wrong(found["test_twice_in_one"])
    assert EXPELLED not in wrong(found["test_twice_in_one"])  # the test asks the second one alone


def test_names_that_are_drawn_anew_in_each_run_are_patterns(project):
    _, output, found = explore(project, "test_it.py::test_drawn_names", "--momus-explore", "all")
    runs = found["test_drawn_names"]["runs"]
    assert {run["schedule"].partition("#")[0] for run in runs} == {"OffsetCommit[group=billing-*]"}
    assert "not reached" not in {run["verdict"] for run in runs}, output


def test_workers_of_xdist_explore_and_their_findings_are_one_report(project):
    words = ["-n", "2", "test_it.py::test_gives_up", "test_it.py::test_narrow"]
    code, output, found = explore(project, *words, "--momus-explore", "6", "--momus-explore-what", "group")
    assert code == 1
    assert set(found) == {"test_gives_up", "test_narrow"}
    assert any("expel_member" in each for each in wrong(found["test_gives_up"]))
    assert "momus explore" in output


def test_second_run_of_a_finding_is_kept_and_opens_at_its_request(project, tmp_path):
    words = ["test_it.py::test_gives_up", "--momus-explore", "3", "--momus-explore-what", "group"]
    code, output, found = explore(project, *words, "--momus-keep-failed", str(tmp_path / "kept"))
    assert code == 1
    (run, *_) = [run for run in found["test_gives_up"]["runs"] if run["kept"]]
    opened = re.fullmatch(r"momus open (.*) --until (\d+) --ui", run["kept"])
    assert run["kept"] in output
    with zipfile.ZipFile(shlex.split(opened[1])[0]) as file:
        requests = [json.loads(line) for line in file.read("journal.jsonl").splitlines()]
    assert requests[int(opened[2])]["fault"] == "explore.0"
    assert requests[int(opened[2])]["api"] == run["schedule"].partition("[")[0]
    wrong_ones = {run["schedule"] for run in found["test_gives_up"]["runs"] if run["again"]}
    assert len(list((tmp_path / "kept").iterdir())) == len(wrong_ones)  # each has its own file


def test_report_is_markdown_a_page_or_xml_as_its_name_says(project):
    words = ["test_it.py::test_gives_up", "--momus-explore", "3", "--momus-explore-what", "group"]
    explore(project, *words, report="found.md")
    assert "| expel_member before | OffsetCommit[billing] | failed | `pytest " in (project / "found.md").read_text()
    explore(project, *words, report="found.html")
    page = (project / "found.html").read_text()
    assert "<h2>test_it.py::test_gives_up</h2>" in page
    assert re.search(r'<tr><th scope="row">expel_member before</th>.*<td class="wrong">\d of \d wrong</td>', page)
    assert "--momus-schedule &#x27;OffsetCommit[group=billing]" in page
    explore(project, *words, report="found.xml")
    (suite,) = ElementTree.parse(project / "found.xml").getroot()
    assert (suite.get("name"), suite.get("tests")) == ("test_it.py::test_gives_up", "3")
    assert int(suite.get("failures")) >= 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--momus-explore", "all", "--momus-explore-what", "eror"], "'eror' is nothing that may happen"),
        (["--momus-schedule", "Commit"], "no step of a schedule: 'Commit'"),
        (["--momus-explore=soon"], "takes a time"),
    ],
)
def test_what_cannot_be_explored_is_an_error_of_usage(project, words, why):
    code, output, _ = explore(project, "test_it.py::test_narrow", *words)
    assert code == 4
    assert why in output


def test_path_after_the_option_is_no_budget(project):
    code, _, found = explore(project, "--momus-explore", "test_it.py::test_narrow")
    assert (code, len(found["test_narrow"]["runs"]) > 0) == (0, True)
