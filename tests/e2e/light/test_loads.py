"""A broker that is filled with a bit of everything, at its start and while it serves; and loads that it refuses."""

from __future__ import annotations

import base64
import json
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from momus import Broker
from momus.control import ControlError
from momus.kit.process import BrokerError

MONEY = '{"type": "record", "name": "Money", "fields": [{"name": "n", "type": "long"}]}'
ALL = """\
topics:
- name: orders
  partitions: 2
  config: {retention.ms: -1}
  records:
  - {value: x, partition: 1}
  records_from: rows.jsonl
groups:
- name: billing
  offsets: [{topic: orders, partition: 1, offset: 1}]
users:
- {name: alice, password: wonder}
- {name: bob}
acls:
- {principal: 'User:alice', operation: READ, resource: topic, name: orders}
quotas:
- {user: alice, producer_byte_rate: 1000}
clock: {set: 2040-01-01, advance: 1d}
faults:
- {fault: inject_error, api: Fetch, error: NOT_COORDINATOR, name: f}
"""
SCHEMAS = """\
schemas:
- {subject: money, file: money.avsc}
- subject: orders-value
  schema: {type: record, name: Order, fields: [{name: price, type: Money}]}
  references: [{name: Money, subject: money, version: 1}]
"""
ONE = {"topics": [{"name": "a", "records": [{"value": "x"}, {"value": "y"}]}]}
DAY_MS = 2_209_075_200_000  # 2040-01-02


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two files that are loaded, what they name, and what is passed over."""
    folder = tmp_path_factory.mktemp("load")
    (folder / "1.yaml").write_text(ALL)
    (folder / "2.yaml").write_text(SCHEMAS)
    (folder / "rows.jsonl").write_text('{"value": "row", "partition": 0}\n')
    (folder / "money.avsc").write_text(MONEY)
    (folder / ".3.yaml").write_text("{")
    (folder / "README.md").write_text("not a load")
    return folder


@pytest.fixture(scope="module")
def filled(folder: Path, tmp_path_factory) -> Iterator[Broker]:
    """Filled by the folder."""
    data = tmp_path_factory.mktemp("data") / "data"
    words = {"security": "sasl_plaintext", "registry": True, "log_level": "info"}
    with Broker(data_dir=data, load=folder, **words) as broker:
        yield broker


def subjects(broker: Broker) -> list[str]:
    asked = urllib.request.Request(f"{broker.registry_url}/subjects")
    asked.add_header("Authorization", f"Basic {base64.b64encode(b'alice:wonder').decode()}")
    with urllib.request.urlopen(asked) as answer:
        found: list[str] = json.load(answer)
    return found


def check_filled(broker: Broker) -> None:
    records = broker.consume("orders")
    assert sorted((each.partition, each.value, each.timestamp_ms) for each in records) == [
        (0, b"row", DAY_MS),
        (1, b"x", DAY_MS),
    ]
    assert broker.committed("billing") == {("orders", 1): 1}
    assert broker.control.ask("GET", "/_admin/users")["users"] == ["alice", "client"]
    assert [each["operation"] for each in broker.control.ask("GET", "/_admin/acls")] == ["read"]
    assert [each["name"] for each in broker.faults.list()] == ["f"]
    assert broker.clock.now().isoformat() == "2040-01-02T00:00:00+00:00"
    assert subjects(broker) == ["money", "orders-value"]


def test_start_fills_a_broker_once_and_sets_faults_and_clock_each_time(filled):
    check_filled(filled)
    done = "topics: 1, records: 2, groups: 1, users: 1, acls: 1, quotas: 1, schemas: 2, faults: 1"
    assert f"loaded {done}\n" in filled.log
    assert "user bob is not made: it has no password" in filled.log
    filled.restart()
    check_filled(filled)
    assert "loaded in this directory already, and not loaded again" in filled.log
    assert "its faults and its clock are set, which no directory keeps" in filled.log


@pytest.fixture(scope="module")
def loaded(tmp_path_factory) -> Path:
    """A data directory into which ONE was loaded."""
    data = tmp_path_factory.mktemp("one") / "data"
    with Broker(data_dir=data, load=ONE):
        pass
    return data


@pytest.fixture
def data(loaded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(loaded, tmp_path / "data"))


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ({"state": "begun", "digest": "another"}, "an earlier start was cut off while it loaded another text"),
        ({"state": "done", "digest": "another"}, "the file has changed since it was loaded in this directory"),
        ("no JSON", "topic a is there already: --load-if-present skip leaves it as it is"),
    ],
)
def test_start_reads_what_an_earlier_one_has_noted(data, mark, said):
    (file,) = data.glob("*load*")
    file.write_text(mark if isinstance(mark, str) else json.dumps(json.loads(file.read_text()) | mark))
    with pytest.raises(BrokerError, match=said), Broker(data_dir=data, load=ONE):
        pass


@pytest.mark.parametrize("present", [[], ["a"]])
def test_start_that_was_cut_off_is_gone_on_with(data, present):
    (file,) = data.glob("*load*")
    noted = json.loads(file.read_text())
    noted["present"]["topic"] = present  # before that start
    file.write_text(json.dumps(noted | {"state": "begun"}))
    with Broker(data_dir=data, load=ONE) as broker:
        assert "an earlier start was cut off while it loaded this; the rest is loaded" in broker.log
        assert [each.value for each in broker.consume("a")] == [b"x", b"y"]
    assert json.loads(file.read_text())["state"] == "done"


# ---- while it serves


def test_cluster_that_serves_is_filled_and_what_is_there_stays(shared_broker):
    load = {"topics": [{"name": "a", "records": [{"value": 5}, {"value": [1]}]}]}
    assert shared_broker.load(load) == {"topics": 1, "records": 2}
    with pytest.raises(ControlError, match=r"topic a is there already: if_present=\"skip\" leaves it as it is"):
        shared_broker.load(load)
    load["topics"].append({"name": "b"})
    assert shared_broker.load(load, if_present="skip") == {"topics": 1}
    assert [each.value for each in shared_broker.consume("a")] == [b"5", b"[1]"]


def test_files_beside_a_file_are_asked_for_and_loaded(shared_broker):
    body = {"files": {"a.yaml": "topics: [{name: beside, records_from: dir/../rows.jsonl}]"}}
    where = "/_admin/load"
    asked = shared_broker.control.ask("POST", where, body)
    assert asked == {"loaded": {}, "present": {}, "needs": ["rows.jsonl"]}
    body["files"]["./rows.jsonl"] = '{"value": "row"}\n'
    assert shared_broker.control.ask("POST", where, body)["loaded"] == {"topics": 1, "records": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics:\n- name: a1\n- name: b1\n  config:\n    retention.ms: x\n", ":5: topics[1].config.retention.ms: "),
        ("topics:\n- nam: b1\n", ":2: topics[0].nam: no such field. Did you mean name?"),
        ("topics:\n- name: a1\n  records:\n  - {partition: 1}\n", ":4: topics[0].records[0].partition: a1 has no"),
        ("groups:\n- name: g\n  offsets:\n  - {topic: b1, offset: 1}\n", ":4: groups[0].offsets[0]"),
        ("users:\n- {name: a, password: b}\n", ":2: users[0]: no listener asks who a client is"),
        ("acls:\n- {principal: 'User:a', operation: read, resource: topic, name: a}\n", "there is no authorizer"),
        ("clock: {set: 1999-01-01}\n", "clock"),
        ("faults:\n- {fault: nothing}\n", ":2: faults[0]"),
        ("topics: {\n", "a.yaml:2: "),
    ],
)
def test_load_with_a_mistake_is_refused_with_its_line_and_changes_nothing(shared_broker, text, said):
    before = shared_broker.control.ask("GET", "/_admin/topics")
    with pytest.raises(ControlError) as refused:
        shared_broker.control.ask("POST", "/_admin/load", {"files": {"a.yaml": text}})
    assert str(refused.value).startswith("a.yaml")
    assert said in str(refused.value)
    assert shared_broker.control.ask("GET", "/_admin/topics") == before


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, 'give one of "files" and "document"'),
        ({"files": {}, "document": {}}, 'give one of "files" and "document"'),
        ({"document": {}, "if_present": "maybe"}, '"if_present" takes fail or skip'),
    ],
)
def test_call_that_says_no_load_is_refused(shared_broker, body, said):
    with pytest.raises(ControlError, match=said):
        shared_broker.control.ask("POST", "/_admin/load", body)
