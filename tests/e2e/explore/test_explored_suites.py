"""`momus explore -- SUITE`: tests that make their clusters by a kit, each explored by its name, in rounds of all."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# A suite and its kit in one file: what a kit sends is all that momus explore knows of it.
SUITE = """
import http.client, json, os, sys, time
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

assert "MOMUS_CONTROL_TOKEN" not in os.environ
line = http.client.HTTPConnection(os.environ["MOMUS_ADDRESS"])

def ask(method, path, body=None, **fields):
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    line.request(method, path, None if body is None else json.dumps(body), named)
    answer = line.getresponse()
    data = json.loads(answer.read())
    assert answer.status == 200, data
    return data

def test(body, name=None):
    named = {"Momus_Test": name or body.__name__}
    made = ask("POST", "/_admin/clusters", {"journal_bytes": 4 << 20}, **named)
    path = "/_admin/clusters/" + made["name"]
    ask("POST", path + "/topics/orders/records", {"records": [{"value": "a"}, {"value": "b"}]})
    failed = False
    try:
        body(made["bootstrap_servers"])
    except (AssertionError, KafkaException) as error:
        failed = True
        print(f"{name or body.__name__} FAILED: {error}")
    ask("DELETE", path, Momus_Test_Failed=str(failed).lower())
    return failed

def consumer(servers):
    made = Consumer({"bootstrap.servers": servers, "group.id": "billing", "auto.offset.reset": "earliest",
                     "enable.auto.commit": False, "heartbeat.interval.ms": 100, "fetch.wait.max.ms": 50})
    made.subscribe(["orders"])
    return made

def bills(servers):
    made, end = consumer(servers), time.monotonic() + 60
    try:
        while made.committed([TopicPartition("orders", 0)], 30)[0].offset < 2 and time.monotonic() < end:
            message = made.poll(0.1)
            if message is not None and message.error() is None:
                try:
                    made.commit(message, asynchronous=False)
                except KafkaException:
                    pass
        assert made.committed([TopicPartition("orders", 0)], 30)[0].offset == 2
    finally:
        made.close()

def commits_once(servers):
    made = consumer(servers)
    try:
        for _ in range(2):
            while (message := made.poll(0.1)) is None or message.error():
                pass
        made.commit(message, asynchronous=False)
    finally:
        made.close()

def dies(servers):
    try:
        commits_once(servers)
    except KafkaException:
        os._exit(3)

code = 0

def is_not_seen(servers):
    global code
    try:
        commits_once(servers)
    except KafkaException:
        code = 4

def hangs(servers):
    try:
        commits_once(servers)
    except KafkaException:
        time.sleep(1000)

def asks_nothing(servers):
    pass

def fails(servers):
    assert False, "always"

failed = [test(globals()[name]) for name in sys.argv[1:]]
sys.exit(code or any(failed))
"""
EXPELLED = "OffsetCommit[group=billing]#1 make_event expel_member before"


@pytest.fixture
def explore(tmp_path):
    """Explore the suite with these tests. Returns the exit code, the output, and test -> what was found."""
    (tmp_path / "suite.py").write_text(SUITE)
    report = tmp_path / "found.json"

    def explored(*tests, words=("--budget", "all"), what="group"):
        command = [sys.executable, "-m", "momus", "explore", "--what", what, *words]
        command += ["--report", str(report), "--", sys.executable, "suite.py", *tests]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        found = {each["test"]: each for each in json.loads(report.read_text())} if report.exists() else {}
        return ran.returncode, ran.stdout + ran.stderr, found

    return explored


def wrong(found):
    return {run["schedule"]: run for run in found["runs"] if run["verdict"] not in ("passed", "not possible")}


def test_each_test_is_explored_by_its_name_in_rounds_of_the_whole(explore):
    code, output, found = explore("bills", "commits_once", "asks_nothing")
    assert code == 1, output
    assert list(found) == ["bills", "commits_once", "asks_nothing"]
    assert not wrong(found["bills"])
    assert found["bills"]["planned"] == len(found["bills"]["runs"]) > 5
    (of_commit,) = [run for text, run in wrong(found["commits_once"]).items() if text == EXPELLED]
    assert (of_commit["verdict"], of_commit["again"]) == ("failed", "failed")
    assert "commits_once FAILED: " in of_commit["why"]
    assert found["asks_nothing"]["note"] == "no client asked its cluster anything"
    again = f"momus explore --test commits_once --schedule '{EXPELLED}' -- {sys.executable} suite.py bills commits_once"
    assert again in output


def test_test_that_ends_the_whole_suite_fails_and_others_get_their_turn(explore):
    code, output, found = explore("dies", "bills")
    assert code == 1, output
    assert wrong(found["dies"])[EXPELLED]["why"].startswith("the command ended with 3 before the test did")
    assert not wrong(found["bills"])
    assert found["bills"]["planned"] == len(found["bills"]["runs"])


def test_code_of_the_command_counts_where_its_kit_says_that_all_has_passed(explore):
    code, output, found = explore("bills", "is_not_seen")
    assert code == 1, output
    assert "its kit knows of no failure, but the command ended with 4" in wrong(found["is_not_seen"])[EXPELLED]["why"]
    assert not wrong(found["bills"])


def test_test_that_hangs_is_ended_and_told_with_its_last_requests(explore):
    code, output, found = explore("hangs", words=("--budget", "2"))
    assert code == 1, output
    hung = wrong(found["hangs"])[EXPELLED]
    assert hung["verdict"] == "hung"
    assert "OffsetCommit" in hung["why"]
    assert "group billing is" in hung["why"]


def test_one_schedule_happens_once_more_in_its_test_alone(explore):
    code, output, _ = explore("commits_once", "bills", words=("--schedule", EXPELLED, "--test", "bills"))
    assert (code, output.splitlines()[0]) == (0, f"passed: {EXPELLED}")
    code, output, _ = explore("commits_once", "bills", words=("--schedule", EXPELLED, "--test", "commits_once"))
    assert (code, output.splitlines()[0]) == (1, f"failed: {EXPELLED}")
    code, output, _ = explore("bills", words=("--schedule", EXPELLED, "--test", "other"))
    assert (code, "no test 'other' has made a cluster: bills" in output) == (1, True)


def test_suite_that_fails_by_itself_is_not_explored(explore):
    code, output, found = explore("fails", "bills")
    assert found["fails"]["note"] == "fails without a fault"
    assert found["bills"]["runs"]
    assert code == 0, output


@pytest.mark.parametrize(
    "words",
    [("--load", "x.json"), ("--check", "true"), ("--brokers", "2"), ("--set", "log.retention.ms=1000"), ("--restart",)],
)
def test_options_of_a_program_are_refused_for_a_suite(explore, tmp_path, words):
    (tmp_path / "x.json").write_text('{"topics": []}')
    code, output, _ = explore("asks_nothing", words=words)
    assert (code, f"{words[0]}: not for a suite" in output) == (2, True)


def test_clusters_without_the_name_of_a_test_are_told(explore, tmp_path):
    (tmp_path / "other.py").write_text(SUITE.replace('{"Momus_Test": name or body.__name__}', "{}"))
    command = [sys.executable, "-m", "momus", "explore", "--", sys.executable, "other.py", "asks_nothing"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "a cluster was made for no test: it is shared, or the kit is older than this momus" in ran.stderr
