"""Finding messages on the page: over all partitions, by each kind of condition, with a live tail and exports."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from clientwork import until
from confluent_kafka import Producer
from page_kit import Load, producing

from momus import Broker
from momus.control import ControlError
from protocol.compression import LZ4
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import build_batch

COUNT = 6000
NEEDLE = 4321


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        broker.create_topic("orders", partitions=3)
        producer = Producer({**broker.client_config("confluent"), "compression.type": "lz4", "linger.ms": 20})
        for number in range(COUNT):
            value = json.dumps({"order": {"number": number, "items": [{"name": f"cup-{number}"}, {"name": "tea é"}]}})
            headers = [("trace", f"t{number}".encode())] if number % 100 == 0 else None
            at_ms = 1_700_000_000_000 + number * 1000
            producer.produce("orders", value, f"table-{number}", number % 3, headers=headers, timestamp=at_ms)
            producer.poll(0)
        assert producer.flush(60) == 0
        yield broker


def hits(broker: Broker, **words: str) -> list[dict]:
    """What the route streams, without a page."""
    import urllib.parse
    import urllib.request

    url = f"http://{broker.control.address}/_admin/topics/orders/search?{urllib.parse.urlencode(words)}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return [json.loads(line) for line in answer]


def numbers(lines: list[dict]) -> list[int]:
    return sorted(int(line["hit"]["key"]["text"].split("-")[1]) for line in lines if "hit" in line)


def test_search_stops_where_enough_is_found_and_refuses_what_is_no_path(broker):
    lines = hits(broker, path="$.order", limit="5")
    assert len(numbers(lines)) == 5
    assert lines[-1]["end"] == "most"
    third = hits(broker, key="table-43", partitions="2", from_ms=str(1_700_000_000_000 + 4_300_000))
    assert numbers(third) == [n for n in (4300, *range(4301, 4400)) if n % 3 == 2 and str(n).startswith("43")]
    with pytest.raises(ControlError, match=r"a path begins with \$"):
        broker.control.ask("GET", "/_admin/topics/orders/search?path=order")


def test_message_is_found_over_all_partitions_in_two_clicks(broker, page):
    tab = page.open(broker, "topics/orders")
    tab.keyboard.press("/")
    tab.keyboard.type(f"cup-{NEEDLE}")
    tab.get_by_role("button", name="Find").click()
    (row,) = page.rows("hits")
    assert (row["Partition"], row["Key"]) == (str(NEEDLE % 3), f"table-{NEEDLE}")
    tab.get_by_text("1 found in 6,000 of 6,000 records").wait_for()
    assert page.findings() == []
    tab.locator("#where").select_option("path")
    tab.locator("#filter").fill("$.order.number < 3")
    tab.get_by_role("button", name="Find").click()
    page.agrees("hits", lambda: ["table-0", "table-1", "table-2"], lambda rows: sorted(row["Key"] for row in rows))
    tab.locator("#filter").fill("order")
    tab.get_by_role("button", name="Find").click()
    tab.get_by_text("a path begins with $").wait_for()
    page.console[:] = [each for each in page.console if "400" not in each]


def parent(pid: int | str) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def searching() -> list[str]:
    """The processes of searches: grandchildren of this process, whose children are brokers."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if b"page.search" in (path / "cmdline").read_bytes() and parent(parent(path.name)) == os.getpid():
                found.append(path.name)
        except OSError:  # it has ended
            continue
    return found


def test_search_and_its_process_end_by_a_button_and_by_leaving_the_view(broker, page, wires):
    value = json.dumps({"absent": {"y": 1}, "text": "x" * 160}).encode()
    batch = build_batch([(b"k", value, [], None)] * 5000, timestamp_ms=1, attributes=LZ4)
    broker.create_topic("large")
    data = [TopicProduceData(name="large", partition_data=[PartitionProduceData(index=0, records=batch)])]
    wire = wires(broker.bootstrap_servers)
    for _ in range(200):
        wire.call(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), 9)
    for leave in ("button", "link"):
        tab = page.open(broker, "topics/large")
        tab.locator("#where").select_option("path")
        tab.locator("#filter").fill("$.absent.y != 1")  # each is parsed
        tab.get_by_role("button", name="Find").click()
        until(lambda: searching(), "a process searches")
        tab.get_by_text("of 1,000,000 records").wait_for()
        if leave == "button":
            tab.get_by_role("button", name="Stop").click()
            tab.get_by_text("; stopped").wait_for()
        else:
            tab.get_by_role("link", name="Groups").click()
        until(lambda: not searching(), "no process searches")


def test_live_tail_shows_what_comes_to_all_partitions(broker, page):
    broker.create_topic("live", partitions=3)
    tab = page.open(broker, "topics/live")
    tab.locator("#filter").fill("coffee")
    tab.get_by_role("button", name="Live tail").click()
    tab.get_by_text("live, the newest first").wait_for()
    broker.produce("live", "tea", partition=0)
    with Load(producing(broker, "live", 3)):
        until(lambda: {row["Partition"] for row in page.rows("hits")} == {"0", "1", "2"}, "all partitions")
    assert {row["Value"] for row in page.rows("hits")} == {"coffee" * 10}
    assert page.findings() == []
    tab.get_by_role("button", name="Stop").click()
    broker.produce("live", "coffee, the last", partition=1)
    page.agrees(
        "partitions",
        lambda: broker.control.ask("GET", "/_admin/topics/live")["partitions"][1]["end"],
        lambda rows: int(rows[1]["End"]),
    )


def test_exports_are_a_file_of_lines_and_one_that_fills_another_broker(broker, page, tmp_path):
    broker.create_topic("kept", partitions=2)
    producer = Producer(broker.client_config("confluent"))
    producer.produce("kept", b"\xff\x00", None, 0, headers=[("h", b"\xfe")], timestamp=1_700_000_000_000)
    producer.produce("kept", 'text "é"\n', b"k", 1, timestamp=1_700_000_000_001)
    producer.produce("kept", None, b"k", 1, timestamp=1_700_000_000_002)
    assert producer.flush(30) == 0
    tab = page.open(broker, "topics/kept")
    files = {}
    for button, name in (("Export JSON lines", "kept.jsonl"), ("Export a load file", "kept.json")):
        with tab.expect_download() as download:
            tab.get_by_role("button", name=button).click()
        assert download.value.suggested_filename == name
        files[name] = tmp_path / name
        download.value.save_as(files[name])
    lines = [json.loads(line) for line in files["kept.jsonl"].read_text().splitlines()]
    assert [(line["partition"], line["offset"]) for line in lines] == [(0, 0), (1, 0), (1, 1)]
    with Broker(load=str(files["kept.json"])) as other:
        ours, theirs = ({(r.partition, r.offset): r for r in each.consume("kept", 3)} for each in (broker, other))
        assert ours == theirs
