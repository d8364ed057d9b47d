"""What the page stands on, without a browser: its files, who may ask, and the stream of events."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from clientwork import until
from cluster_kit import Wire
from confluent_kafka import Consumer, Producer, TopicPartition
from core_requests import GROUP_RESOURCE, alter_request, produce_request
from test_control_requests import exchange
from wire_peer import resident_bytes

from momus import Broker
from momus.control import Control
from momus.faults import once
from protocol.messages.share_fetch import (
    ShareFetchRequest,
    ShareFetchRequestAcknowledgementBatch,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
)
from protocol.messages.share_group import ShareGroupHeartbeatRequest

LINK = '<link rel="stylesheet" href="/ui/style.css">'
STATIC = Path(__file__).parents[2] / "broker" / "shell" / "page" / "static"


@contextmanager
def asked(address: str, path: str, method: str = "GET", **fields: str) -> Iterator[HTTPResponse]:
    connection = HTTPConnection(address, timeout=60)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in fields.items()})
        yield connection.getresponse()
    finally:
        connection.close()


def status(address: str, path: str, method: str = "GET", **fields: str) -> int:
    with asked(address, path, method, **fields) as response:
        return response.status


def events(response: HTTPResponse) -> Iterator[tuple[str, object]]:
    name = ""
    for line in response:
        if line.startswith(b"event: "):
            name = line[7:-1].decode()
        elif line.startswith(b"data: "):
            yield name, json.loads(line[6:])


def test_page_is_served_with_a_policy_that_lets_nothing_else_run(shared_broker):
    with asked(shared_broker.control.address, "/ui") as response:
        policy = response.headers["Content-Security-Policy"]
        assert (response.status, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        text = response.read().decode()
    style = (STATIC / "style.css").read_text()
    assert text == (STATIC / "index.html").read_text().replace(LINK, f"<style>{style}</style>")
    assert LINK not in text
    assert f"style-src 'self' 'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in policy
    named = {word for word in text.split('"') if word.startswith("/ui/")}
    for path in named | {f"/ui/{each.name}" for each in STATIC.iterdir()}:
        with asked(shared_broker.control.address, path) as response:
            assert response.status == 200, path
            assert response.read() == (STATIC / path.rpartition("/")[2]).read_bytes()
    assert status(shared_broker.control.address, "/ui/..%2ffiles.py") == 404
    assert status(shared_broker.control.address, "/ui/%2e%2e%2ffiles.py") == 404


def test_files_of_the_page_name_no_other_host_and_set_no_html():
    for path in STATIC.iterdir():
        text = path.read_text()
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", ""), path
        assert "https://" not in text, path
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, path
    ours = [path for path in STATIC.iterdir() if not path.name.startswith("uplot.")]
    assert sum(path.stat().st_size for path in ours) < 130_000
    assert sum(path.stat().st_size for path in STATIC.iterdir()) < 190_000


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_requests_of_our_page_pass_and_those_of_others_are_refused(shared_broker, method):
    address, path = shared_broker.control.address, "/_admin/clock" if method == "GET" else "/_admin/reset"
    port = address.rpartition(":")[2]
    served = {"Host": address}
    for origin in ("http://example.org", f"http://localhost:{port}", f"http://127.0.0.1:{int(port) + 1}", "null"):
        assert status(address, path, method, Origin=origin, **served) == 403, origin
    for site in ("cross-site", "same-site"):
        assert status(address, path, method, Sec_Fetch_Site=site, **served) == 403
        assert status(address, path, method, Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", **served) == 403
    assert status(address, path, method, Origin=f"http://{address}", Sec_Fetch_Site="same-origin", **served) == 200
    assert status(address, path, method, Origin="http://evil.org", Host="evil.org") == 421
    assert status(address, path, method, Host="evil.org") == 421
    assert status(address, path, method, Origin=f"http://localhost:{port}", Host=f"localhost:{port}") == 200


def test_link_of_another_page_leads_to_the_page_but_to_nothing_else(shared_broker):
    address = shared_broker.control.address
    assert status(address, "/ui", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate") == 200
    assert status(address, "/ui/frame.js", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors") == 403
    assert status(address, "/_admin/topics", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate") == 403


@pytest.fixture
def guarded(serve_with: Callable[..., str]) -> str:
    return serve_with("--control", "127.0.0.1:0", "--control-token", "sesame").replace("0.0.0.0", "127.0.0.1")


def test_files_need_no_token_and_everything_else_does(guarded):
    assert status(guarded, "/ui") == status(guarded, "/ui/frame.js") == 200
    for path in ("/_admin/topics", "/events?path=/_admin/topics", "/", "/uix"):
        assert status(guarded, path) == 401, path
    assert status(guarded, "/ui", "POST") == 401
    assert status(guarded, "/_admin/topics", Authorization="Bearer sesame") == 200


def test_serve_ui_prints_a_link_and_opens_an_endpoint(tmp_path):
    command = [sys.executable, "-m", "momus", "serve", "--ui", "-d", str(tmp_path / "d"), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline().split() for _ in range(3)]
            assert [line[:2] for line in lines] == [["momus", "ready"], ["momus", "control"], ["momus", "ui"]]
            assert lines[2][2] == f"http://{lines[1][2]}/ui"
            assert status(lines[1][2], "/ui") == 200
        finally:
            process.terminate()


def test_ui_url_names_the_cluster(capfd):
    with Broker(ui=True) as broker:
        assert broker.ui_url == f"http://{broker.control.address}/ui#/default/topics"
        assert f"momus ui {broker.ui_url}\n" in capfd.readouterr().err
        with broker.create_cluster(name="second") as cluster:
            assert cluster.ui_url == f"http://{broker.control.address}/ui#/second/topics"


def test_events_tell_an_answer_and_each_change_of_it(shared_broker):
    control = shared_broker.control
    with asked(control.address, "/events?every_ms=200&path=/_admin/topics%3Ffilter%3Dwatched") as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        told = events(response)
        assert next(told) == ("answer", {"offset": 0, "total": 0, "topics": []})
        shared_broker.create_topic("watched")
        name, answer = next(told)
        assert (name, answer["total"]) == ("answer", 1)
        shared_broker.produce("watched", "x")
        assert next(told)[1]["topics"][0]["records"] == 1


def test_events_tell_why_there_is_no_answer_and_go_on(shared_broker):
    with asked(shared_broker.control.address, "/events?every_ms=200&path=/_admin/topics/later") as response:
        told = events(response)
        assert next(told) == ("refused", {"error": "no such topic: later", "status": 404})
        shared_broker.create_topic("later")
        assert next(told)[0] == "answer"


@pytest.mark.parametrize(
    ("query", "word"),
    [("every_ms=1&path=/", "every_ms"), ("path=/events", "themselves"), ("every_ms=x&path=/", "every_ms")],
)
def test_events_that_cannot_be_are_refused(shared_broker, query, word):
    with asked(shared_broker.control.address, f"/events?{query}") as response:
        assert response.status == 400
        assert word in json.loads(response.read())["error"]


def test_events_of_what_is_no_json_are_refused(shared_broker):
    with asked(shared_broker.control.address, "/events?path=/ui") as response:
        assert next(events(response))[0] == "refused"


def test_streams_are_limited_and_make_room_when_their_client_hangs_up():
    with Broker() as broker:
        address = broker.control.address
        open_ = [HTTPConnection(address, timeout=60) for _ in range(16)]
        responses = []
        for each in open_:
            each.request("GET", "/events?path=/healthz")
            responses.append(each.getresponse())
            assert responses[-1].status == 200
        assert status(address, "/events?path=/healthz") == 503
        assert status(address, "/healthz") == 200
        responses.pop().close()
        until(lambda: status(address, "/events?path=/healthz") == 200, "room for another stream")
        for each in open_:
            each.close()
        broker.stop()
        assert broker.log == ""


@pytest.mark.slow  # twelve seconds in which nothing is read
def test_slow_reader_loses_updates_is_told_and_costs_no_memory():
    with Broker(flush="memory") as broker:
        broker.control.ask("POST", "/_admin/topics", {"name": "many", "partitions": 1000})
        before = resident_bytes(broker.pid)
        connection = HTTPConnection(broker.control.address, timeout=60)
        host, _, port = broker.control.address.rpartition(":")
        connection.sock = socket.socket()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # what it does not read must wait
        connection.sock.connect((host, int(port)))
        connection.request("GET", "/events?every_ms=200&path=/_admin/topics/many")
        response = connection.getresponse()  # each answer is 130 kB, and no more is read for now
        for number in range(120):
            broker.produce("many", "x" * 100, partition=number)
            _wait(0.1)
        grown = resident_bytes(broker.pid) - before
        told, names = events(response), []
        while "behind" not in names and len(names) < 100:
            broker.produce("many", "x")  # there is always something to tell
            names.append(next(told)[0])
        assert names[0] == "answer"
        assert "behind" in names
        assert grown < 20 << 20
        connection.close()


def _wait(seconds: float) -> None:
    import time

    time.sleep(seconds)


def test_names_in_paths_are_decoded(shared_broker):
    control = Control(shared_broker.control.address)
    shown = control.ask("GET", "/_admin/groups/a%2Fb%20%3Cc%3E")
    assert shown["group"] == "a/b <c>"


def test_a_request_that_is_half_closed_is_still_answered(shared_broker):
    answer = exchange(shared_broker.control.address, b"GET /ui HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")


def test_list_has_what_can_be_read_beside_a_damaged_log_and_says_that_there_is_more(broker_factory, tmp_path):
    """One log that cannot be read was an error of the whole list."""
    broker = broker_factory(data_dir=tmp_path / "data")
    broker.create_topic("t")
    for name in ("one", "two"):
        producer = Producer({**broker.client_config("confluent"), "transactional.id": name})
        producer.init_transactions(60)
        settings = {**broker.client_config("confluent"), "group.id": name}
        consumer = Consumer(settings)
        consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
        consumer.close()
    broker.kill()
    for topic in ("__consumer_offsets", "__transaction_state"):
        damaged, _ = sorted(each for each in (tmp_path / "data").glob(f"{topic}-*/*.log") if each.stat().st_size)
        damaged.unlink()
        damaged.mkdir()
    broker.start()
    for view in ("groups", "transactions"):
        found = broker.control.ask("GET", f"/_admin/{view}")
        assert (len(found[view]), found["loading"]) == (1, 1)


def test_list_of_groups_says_nothing_of_the_lag_of_a_share_group(broker_factory):
    """It has committed nothing there, so its lag seemed to be 0; the view of the group asks for it."""
    broker = broker_factory()
    broker.create_topic("t")
    with closing(Wire(broker.bootstrap_servers)) as wire:
        request = ShareGroupHeartbeatRequest(
            group_id="s", member_id="m" * 22, member_epoch=0, subscribed_topic_names=["t"]
        )
        assert wire.call(request, 1).error_code == 0
    (row,) = broker.control.ask("GET", "/_admin/groups")["groups"]
    assert (row["type"], "lag" in row) == ("share", False)


def test_share_group_shows_its_dead_letter_queue_and_what_keeps_letters_from_it(broker_factory):
    broker = broker_factory()
    broker.create_topic("t")
    queue, where = "errors.deadletterqueue.topic.name", "/_admin/groups/s/details"
    with closing(Wire(broker.bootstrap_servers)) as wire:

        def set_group(**configs):
            assert wire.call(alter_request(GROUP_RESOURCE, "s", configs), 1).responses[0].error_code == 0

        set_group(**{"share.auto.offset.reset": "earliest"})
        member = {"group_id": "s", "member_id": "m" * 22}
        heartbeat = ShareGroupHeartbeatRequest(**member, member_epoch=0, subscribed_topic_names=["t"])
        topic_id = wire.call(heartbeat, 1).assignment.topic_partitions[0].topic_id
        nothing = {"queue": "", "exists": False, "copies": False, "why_not": ""}
        assert broker.control.ask("GET", where)["dead_letters"] == nothing
        set_group(**{queue: "dlq.s", "errors.deadletterqueue.copy.record.enable": "true"})
        assert broker.control.ask("GET", where)["dead_letters"] == {
            "queue": "dlq.s",
            "exists": False,
            "copies": True,
            "why_not": "the topic dlq.s does not exist, and errors.deadletterqueue.auto.create.topics.enable is false",
        }
        broker.create_topic("dlq.s", config={"errors.deadletterqueue.group.enable": "true"})
        broker.faults.fail_dead_letter("NETWORK_EXCEPTION", group="s", trigger=once)
        broker.clock.freeze()
        wire.call(produce_request("t", 0, b"a", b"b", b"c"), 7)
        fetch = ShareFetchRequest(**member, share_session_epoch=0, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)
        fetch.max_records = fetch.batch_size = 10
        part = ShareFetchRequestFetchPartition(partition_index=0)
        fetch.topics = [ShareFetchRequestFetchTopic(topic_id=topic_id, partitions=[part])]
        assert wire.call(fetch, 2).responses[0].partitions[0].acquired_records
        batch = ShareFetchRequestAcknowledgementBatch(first_offset=0, last_offset=1, acknowledge_types=[3])
        part.acknowledgement_batches, fetch.share_session_epoch = [batch], 1
        assert wire.call(fetch, 2).responses[0].partitions[0].acknowledge_error_code == 0
        shown = broker.control.ask("GET", where)
        assert (shown["dead_letters"]["why_not"], shown["offsets"][0]["archiving"]) == ("", 2)
        broker.clock.advance(seconds=1)
        shown = broker.control.ask("GET", where)
        assert (shown["offsets"][0]["archiving"], shown["offsets"][0]["lag"]) == (0, 1)


@pytest.mark.parametrize("from_ms", [None, 2500])
def test_search_reads_files_and_what_cannot_be_handed_over_alike(broker_factory, from_ms):
    broker = broker_factory(flush="os")
    broker.create_topic("wide", partitions=70)  # more than descriptors are handed over
    producer = Producer(broker.client_config("confluent"))
    for number in range(70 * 3):
        producer.produce("wide", f"cup-{number}", partition=number % 70, timestamp=1000 * (1 + number // 70))
    assert producer.flush(60) == 0
    query = "value=cup" if from_ms is None else f"value=cup&from_ms={from_ms}"
    with asked(broker.control.address, f"/_admin/topics/wide/search?{query}&limit=500") as answer:
        lines = [json.loads(line) for line in answer]
    hits = [line["hit"] for line in lines if "hit" in line]
    first = 0 if from_ms is None else 2
    expected = [(index, offset, f"cup-{offset * 70 + index}") for index in range(70) for offset in range(first, 3)]
    assert [(each["partition"], each["offset"], each["value"]["text"]) for each in hits] == expected
    assert (lines[-1]["end"], lines[-1]["hits"]) == ("all", len(expected))
