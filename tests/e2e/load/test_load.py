"""A broker that is filled from files: by a start, a cluster, the marker of fixtures, the control plane."""

from __future__ import annotations

import json
import socket

import pytest
from load_kit import ORDERS, ROWS, broker_on, records_of, refused, serve, write_orders

from momus import Broker
from momus.client.kafka_client import Client
from momus.control import ControlError
from protocol.partitioner import partition_of_key

pytest_plugins = ["pytester"]

LOADED = {
    0: [b"text", b"row 2"],
    1: [b"row 0", b"row 3"],
    2: [b"\0\1\2", b"row 1", b"row 4"],
}


def check_loaded(broker) -> None:
    found = records_of(broker, "orders")
    assert found[partition_of_key(b"table-4", 3)].pop(0) == b'{"item":"coffee","price":3.5}'
    assert found == LOADED
    assert broker.committed("billing") == {("orders", 0): 1, ("orders", 2): 1}
    assert records_of(broker, "audit") == {}
    (record,) = [each for each in broker.consume("orders") if each.value == b"text"]
    assert (record.timestamp_ms, record.headers) == (1767225600000, [("trace", b"x"), ("none", None)])


def topics_of(broker) -> dict[str, int]:
    """Partitions by topic, without those that a broker makes for itself."""
    rows = broker.control.ask("GET", f"{broker.control.prefix}/topics")["topics"]
    return {row["topic"]: row["partitions"] for row in rows if not row["internal"]}


def test_broker_is_filled_before_it_serves_and_once(tmp_path):
    with broker_on(tmp_path, load=write_orders(tmp_path), log_level="info") as broker:
        check_loaded(broker)
        assert "loaded topics: 2, records: 8, groups: 1, quotas: 1" in broker.log
        broker.kill()
        broker.start()
        check_loaded(broker)
        assert "loaded in this directory already, and not loaded again" in broker.log


def test_memory_is_filled_at_each_start(tmp_path):
    with Broker(flush="memory", load=write_orders(tmp_path)) as broker:
        broker.restart()
        check_loaded(broker)


def test_cluster_is_filled_by_the_control_plane_with_files_beside(kafka_process_broker, tmp_path, monkeypatch):
    write_orders(tmp_path)
    monkeypatch.chdir(tmp_path)
    for load in ("orders.yaml", tmp_path):
        with kafka_process_broker.create_cluster(load=load) as cluster:
            check_loaded(cluster)


def test_cluster_is_filled_by_a_mapping(kafka_broker):
    load = {"topics": [{"name": "a", "records": [{"value": 5}, {"value": [1]}]}]}
    assert kafka_broker.load(load) == {"topics": 1, "records": 2}
    assert records_of(kafka_broker, "a") == {0: [b"5", b"[1]"]}
    with pytest.raises(ControlError, match=r"topic a is there already: if_present=\"skip\" leaves it as it is"):
        kafka_broker.load(load)
    load["topics"].append({"name": "b"})
    assert kafka_broker.load(load, if_present="skip") == {"topics": 1}
    assert records_of(kafka_broker, "a") == {0: [b"5", b"[1]"]}


def test_load_of_several_megabytes_goes_in_one_call(kafka_broker):
    rows = [{"value": "x" * 500_000, "key": str(number)} for number in range(12)]
    assert kafka_broker.load({"topics": [{"name": "t", "records": rows}]}) == {"topics": 1, "records": 12}


def test_cluster_that_cannot_be_filled_is_not_made(kafka_process_broker, tmp_path):
    (tmp_path / "a.json").write_text('{"topics": [\n{"nam": "a"}]}')
    with pytest.raises(ControlError, match=r"a.json:2: topics\[0\].nam: no such field. Did you mean name\?"):
        kafka_process_broker.create_cluster(load=tmp_path / "a.json")
    assert [each["name"] for each in kafka_process_broker.control.ask("GET", "/_admin/clusters")] == ["default"]
    (tmp_path / "a.json").write_text('{"topics": [{"name": "a", "records_from": "gone.jsonl"}]}')
    with pytest.raises(FileNotFoundError, match=r"gone\.jsonl"):
        kafka_process_broker.create_cluster(load=tmp_path / "a.json")


WRONG = {
    "config": (
        "topics:\n- name: a\n- name: b\n  config:\n    retention.ms: x\n",
        ":5: topics[1].config.retention.ms: ",
    ),
    "unknown": ("topics:\n- name: b\n  config:\n    retention.mss: 5\n", ":4: topics[0].config.retention.mss: "),
    "partition": (
        "topics:\n- name: a\n  records:\n  - {partition: 1}\n",
        ":4: topics[0].records[0].partition: a has no",
    ),
    "key": (
        "topics:\n- name: a\n  config: {cleanup.policy: compact}\n  records:\n  - {key: a}\n  - {value: b}\n",
        ":6: topics[0].records[1]: INVALID_RECORD",
    ),
    "size": (
        "topics:\n- name: a\n  config: {max.message.bytes: 100}\n  records:\n  - {value: " + "x" * 99 + "}\n",
        ":5: topics[0].records[0]: MESSAGE_TOO_LARGE",
    ),
    "offset": (
        "topics:\n- name: a\ngroups:\n- name: g\n  offsets:\n  - {topic: b, offset: 1}\n",
        ":6: groups[0].offsets[0]",
    ),
    "acl": (
        "topics:\n- name: a\nacls:\n- {principal: 'User:a', operation: read, resource: topic, name: a}\n",
        ":4: acls[0]: there is no authorizer",
    ),
    "user": (
        "topics:\n- name: a\nusers:\n- {name: a, password: b}\n",
        ":4: users[0]: no listener asks who a client is",
    ),
    "fault": ("topics:\n- name: a\nfaults:\n- {fault: inject_eror}\n", ":4: faults[0]: "),
    "clock": ("topics:\n- name: a\nclock:\n  set: 2001-01-01\n", ":4: clock.set: the clock is at "),
    "quota": ("topics:\n- name: a\nquotas:\n- {ip: a, producer_byte_rate: 5}\n", ":4: quotas[0]: "),
    "schema": (
        "topics:\n- name: a\nschemas:\n- {subject: s, schema: '{\"type\": 5}'}\n",
        ":4: schemas[0]: Invalid schema",
    ),
    "internal": ("topics:\n- name: a\n- name: __consumer_offsets\n", ":3: topics[1]: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_the_cluster_would_refuse_is_found_before_anything_is_loaded(kafka_broker, tmp_path, case):
    text, said = WRONG[case]
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(ControlError) as wrong:
        kafka_broker.load(file)
    assert f"{file}{said}" in str(wrong.value)
    assert topics_of(kafka_broker) == {}


def test_start_that_is_refused_names_all_files_and_loads_nothing(tmp_path):
    (tmp_path / "load").mkdir()
    (tmp_path / "load" / "1.yaml").write_text("topics: [{name: good}]\n")
    (tmp_path / "load" / "2.json").write_text('{"topics": [{"name": "good"}], "x": 1}')
    (tmp_path / "load" / "3.toml").write_text("[[groups]]\n")
    code, said = refused("-d", str(tmp_path / "data"), "--load", str(tmp_path / "load"))
    assert code == 2
    assert "Traceback" not in said
    assert "1.yaml:1: topics[0]: topic good is in" not in said
    for place in ("2.json:1: x: no such field.", '3.toml:1: groups[0]: "name" is missing'):
        assert place in said
    assert not (tmp_path / "data").exists()
    code, said = refused("-d", str(tmp_path / "data"), "--load", str(tmp_path / "gone.yaml"))
    assert (code, "gone.yaml: No such file or directory" in said) == (2, True)


def test_changed_file_says_so_and_skip_loads_what_is_new(tmp_path):
    file = write_orders(tmp_path)
    with broker_on(tmp_path, load=file):
        pass
    with open(file, "a") as changed:
        changed.write("users: []\n")
    code, said = refused("-d", str(tmp_path / "data"), "--load", file)
    assert code == 2
    assert "topics[0]: topic orders is there already" in said
    assert "the file has changed since it was loaded in this directory" in said
    (tmp_path / "orders.yaml").write_text(ORDERS.replace("groups:", "  - {name: more, partitions: 2}\ngroups:"))
    process = serve("-d", str(tmp_path / "data"), "--load", file, "--load-if-present", "skip", "-l", "info")
    assert process.stdout.readline().startswith("momus ready")
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert "loaded topics: 1\n" in said


def test_order_of_a_folder_is_that_of_names_and_hidden_files_are_left_out(tmp_path):
    (tmp_path / "2.json").write_text('{"groups": [{"name": "g", "offsets": [{"topic": "t", "offset": 2}]}]}')
    (tmp_path / "1.toml").write_text('[[topics]]\nname = "t"\n[[topics.records]]\nvalue = "x"\n')
    (tmp_path / ".3.json").write_text("{")
    (tmp_path / "README.md").write_text("not a load")
    with Broker(flush="memory", load=tmp_path) as broker:
        assert broker.committed("g") == {("t", 0): 2}


def test_users_acls_faults_and_clock_are_set(tmp_path):
    load = {
        "users": [{"name": "alice", "password": "wonder"}, {"name": "bob"}],
        "acls": [{"principal": "User:alice", "operation": "READ", "resource": "topic", "name": "orders"}],
        "topics": [{"name": "orders", "records": [{"value": "x"}]}],
        "clock": {"set": "2040-01-01", "advance": "1d"},
        "faults": [{"fault": "inject_error", "api": "Fetch", "error": "NOT_COORDINATOR", "name": "f"}],
    }
    with broker_on(tmp_path, security="sasl_plaintext", load=load) as broker:
        for _ in range(2):
            assert broker.control.ask("GET", "/_admin/users")["users"] == ["alice", "client"]
            acls = broker.control.ask("GET", "/_admin/acls")
            assert [(each["principal"], each["operation"]) for each in acls] == [("User:alice", "read")]
            assert [each["name"] for each in broker.control.ask("GET", "/_admin/faults")] == ["f"]
            assert broker.clock.now().isoformat() == "2040-01-02T00:00:00+00:00"
            assert [record.timestamp_ms for record in broker.consume("orders")] == [2209075200000]
            broker.restart()
        assert "user bob is not made: it has no password" in broker.log


def test_schemas_are_in_the_registry_inside(tmp_path):
    (tmp_path / "money.avsc").write_text(
        '{"type": "record", "name": "Money", "fields": [{"name": "n", "type": "long"}]}'
    )
    (tmp_path / "a.yaml").write_text(
        "schemas:\n"
        "- {subject: money, file: money.avsc}\n"
        "- subject: orders-value\n"
        "  schema: {type: record, name: Order, fields: [{name: price, type: Money}]}\n"
        "  references: [{name: Money, subject: money, version: 1}]\n"
        "- {subject: settings-value, type: json, schema: {type: object}}\n"
    )
    import urllib.request

    with broker_on(tmp_path, load=tmp_path / "a.yaml", registry=True) as broker:
        with urllib.request.urlopen(f"{broker.registry_url}/subjects") as answer:
            assert json.load(answer) == ["money", "orders-value", "settings-value"]
        with urllib.request.urlopen(f"{broker.registry_url}/subjects/orders-value/versions/1") as answer:
            assert json.load(answer)["references"] == [{"name": "Money", "subject": "money", "version": 1}]


def test_topics_of_wurstmeisters_variable_are_made_and_those_that_are_there_stay(tmp_path):
    variable = {"KAFKA_CREATE_TOPICS": "orders:3:2,prices:1:1:compact", "MOMUS_LOG_LEVEL": "info"}
    data = str(tmp_path / "data")
    for made in ("made topics: 2", "made nothing new; there already: orders, prices"):
        process = serve("-d", data, "--control", "127.0.0.1:0", **variable)
        assert process.stdout.readline().startswith("momus ready")
        process.terminate()
        _, said = process.communicate(timeout=60)
        assert made in said
        assert "unknown settings" not in said
        assert ("topic orders gets replicas: 1, not 2: there are no more brokers" in said) == (made[-1] == "2")
    with broker_on(tmp_path) as broker:
        assert topics_of(broker) == {"orders": 3, "prices": 1}
        configs = broker.control.ask("GET", "/_admin/topics/prices")["configs"]
        assert {each["name"]: each["value"] for each in configs}["cleanup.policy"] == "compact"
    code, said = refused("-d", data, KAFKA_CREATE_TOPICS="orders")
    assert (code, "KAFKA_CREATE_TOPICS: orders: it is name:partitions:replicas" in said) == (2, True)


def test_variable_names_files_a_line_each(tmp_path):
    (tmp_path / "a.json").write_text('{"topics": [{"name": "a"}]}')
    (tmp_path / "b.json").write_text('{"topics": [{"name": "b"}]}')
    process = serve("-d", str(tmp_path / "data"), "-l", "info", MOMUS_LOAD=f"{tmp_path}/a.json\n{tmp_path}/b.json")
    assert process.stdout.readline().startswith("momus ready")
    process.terminate()
    assert "loaded topics: 2" in process.communicate(timeout=60)[1]


def test_no_client_is_served_before_all_is_loaded(tmp_path):
    """A client that asks again and again finds the topic whole in its first answer."""
    rows = "".join(f'{{"value": "{number}"}}\n' for number in range(20_000))
    (tmp_path / "rows.jsonl").write_text(rows)
    (tmp_path / "a.json").write_text('{"topics": [{"name": "t", "records_from": "rows.jsonl"}]}')
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    process = serve("--listen", address, "-d", str(tmp_path / "data"), "--load", str(tmp_path / "a.json"))
    try:
        while process.poll() is None:
            try:
                with Client(address) as client:
                    (topic,) = client.describe_topics(["t"])
            except ConnectionRefusedError:
                continue
            except OSError as error:
                if "Connection refused" not in str(error):
                    raise
                continue
            assert topic["partitions"][0]["end"] == 20_000
            break
    finally:
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said


def test_marker_is_relative_to_the_file_of_the_test(pytester):
    pytester.mkdir("below")
    pytester.makefile(".yaml", **{"below/orders": ORDERS})
    pytester.makefile(".jsonl", **{"below/rows": ROWS})
    tests = """
        import pytest

        @pytest.mark.momus(load="orders.yaml")
        def test_loaded(kafka_broker):
            assert kafka_broker.committed("billing") == {("orders", 0): 1, ("orders", 2): 1}
            assert len(kafka_broker.consume("orders")) == 8

        @pytest.mark.momus(load="orders.yaml")
        def test_fork(kafka_broker_fork):
            assert len(kafka_broker_fork.consume("orders")) == 8

        @pytest.mark.momus(load="orders.yaml")
        def test_process(kafka_process_broker):
            assert len(kafka_process_broker.consume("orders")) == 8

        @pytest.mark.momus(load={"topics": [{"name": "a"}]})
        def test_mapping(kafka_broker):
            assert kafka_broker.consume("a") == []

        @pytest.mark.momus(load="gone.yaml")
        def test_gone(kafka_broker):
            pass
        """
    pytester.makepyfile(**{"below/test_them": tests})
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:xdist")
    result.assert_outcomes(passed=4, errors=1)
    result.stdout.fnmatch_lines(["*gone.yaml*"])
