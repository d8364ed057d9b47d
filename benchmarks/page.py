"""What the page costs: its first paint, and what one left open takes of the broker and of the browser under load.

    python -m benchmarks.page [--topics 10000] [--groups 5000] [--minutes 5] [--rate 1000] [--views topics,journal]

Needs the extra page-dev and chromium. A broker with many topics and groups is given RATE requests a second, 9 of 10 a
Produce and one an OffsetCommit, on 8 connections. Printed: the first contentful paint of each view meanwhile (median of
seven fresh tabs, and the longest) beside that of a line of text, and for each of VIEWS (none: ""), open for MINUTES:
the CPU of the broker without the page (a minute before and one after) and with it, the heap of the page's script (after
a collection) and the broker's resident memory, at the start and at the end.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import threading
import time
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.wire import frame
from momus import Broker
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import build_batch

VIEWS = ("timeline", "topics", "groups", "journal", "faults", "transactions", "schemas", "security", "cluster")
BARE = "a line of text"  # what the machine takes for any page, in the same minute
FIRST_PAINT = """() => new Promise((tell) => new PerformanceObserver((list) => {
  for (const each of list.getEntriesByName("first-contentful-paint")) tell(each.startTime);
}).observe({ type: "paint", buffered: true }))"""
ROUNDS = 7
CONNECTIONS = 8
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def make_groups(address: str, count: int) -> None:
    """Groups that have committed an offset."""
    host, _, port = address.rpartition(":")
    places = [OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")]
    topics = [OffsetCommitRequestTopic(name="topic-00000", partitions=places)]
    with socket.create_connection((host, int(port))) as wire, wire.makefile("rb") as replies:
        for number in range(count):
            group = f"group-{number:05}"
            commit = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)
            wire.sendall(frame(commit, 8))
            replies.read(int.from_bytes(replies.read(4), "big"))


def frames() -> tuple[bytes, bytes]:
    """A Produce and an OffsetCommit."""
    batch = build_batch([(b"table", b"coffee" * 10, [], None)], timestamp_ms=1)
    data = [TopicProduceData(name="topic-00000", partition_data=[PartitionProduceData(index=0, records=batch)])]
    produce: Any = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=data)
    places = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")]
    topics = [OffsetCommitRequestTopic(name="topic-00000", partitions=places)]
    commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics)
    return frame(produce, 9), frame(commit, 8)


class Load:
    """So many requests a second, evenly, each connection with one in flight."""

    def __init__(self, address: str, rate: int) -> None:
        self.sent = 0
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(address, rate / CONNECTIONS)) for _ in range(CONNECTIONS)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, address: str, rate: float) -> None:
        host, _, port = address.rpartition(":")
        produce, commit = frames()
        with socket.create_connection((host, int(port))) as wire, wire.makefile("rb") as replies:
            begin_s, n = time.monotonic(), 0
            while not self._stop.is_set():
                n += 1
                time.sleep(max(0.0, begin_s + n / rate - time.monotonic()))
                wire.sendall(commit if n % 10 == 0 else produce)
                replies.read(int.from_bytes(replies.read(4), "big"))
                self.sent += 1

    def stop(self) -> None:
        """End, and wait for the last replies."""
        self._stop.set()
        for thread in self._threads:
            thread.join()


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def percent(broker: Broker, load: Load, seconds: float) -> tuple[float, float]:
    """The broker's CPU in per cent of one core, and the requests a second, over some time."""
    begin_s, used_s, sent = time.monotonic(), cpu_s(broker.pid), load.sent
    time.sleep(seconds)
    took_s = time.monotonic() - begin_s
    return 100 * (cpu_s(broker.pid) - used_s) / took_s, (load.sent - sent) / took_s


def heap_mb(tab: Any) -> float:
    """What the page's script holds, once what it does not hold is collected."""
    session = tab.context.new_cdp_session(tab)
    session.send("HeapProfiler.collectGarbage")
    found = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
    session.detach()
    return float(found)


def first_paint(browser: Any, url: str) -> float:
    """From the start of the navigation to the first content, in ms, in a tab with nothing cached."""
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(url)
    found = float(tab.evaluate(FIRST_PAINT))
    context.close()
    return found


def left_open(browser: Any, broker: Broker, load: Load, view: str, seconds: float) -> None:
    """Measure for a minute without the page, then with one that stays open, then a minute without; print a line."""
    away_s = min(60.0, seconds)
    without = [percent(broker, load, away_s)[0]]
    tab = browser.new_page()
    tab.goto(f"{broker.ui_url.partition('#')[0]}#/default/{view}")
    tab.wait_for_selector("h1")
    heaps, memories = [heap_mb(tab)], [resident_mb(broker.pid)]
    used, rate = percent(broker, load, seconds)
    heaps.append(heap_mb(tab))
    memories.append(resident_mb(broker.pid))
    tab.close()
    without.append(percent(broker, load, away_s)[0])
    off = statistics.mean(without)
    print(
        f"{view:>13} {rate:>8.0f}/s {off:>8.1f} % {used:>8.1f} % {used - off:>6.1f} %"
        f" {heaps[0]:>6.1f} to {heaps[1]:.1f} MB {memories[0]:>8.1f} to {memories[1]:.1f} MB",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=5_000)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--views", default="topics,journal")
    options = parser.parse_args()
    with Broker(journal_mb=16) as broker, sync_playwright() as playwright:
        broker.create_topics({f"topic-{number:05}": 1 for number in range(options.topics)})
        make_groups(broker.bootstrap_servers, options.groups)
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        load = Load(broker.bootstrap_servers, options.rate)
        begin_s, sent = time.monotonic(), load.sent
        origin = f"http://{broker.control.address}"
        urls = {BARE: f"{origin}/healthz", **{view: f"{origin}/ui#/default/{view}" for view in VIEWS}}
        paints: dict[str, list[float]] = {what: [] for what in urls}
        for _ in range(ROUNDS):  # in turns, so that other work of the machine is in all of them
            for what, url in urls.items():
                paints[what].append(first_paint(browser, url))
        of_each = (f"{what} {statistics.median(found):.0f}, {max(found):.0f}" for what, found in paints.items())
        print("first paint in ms, median and longest:", "; ".join(of_each))
        bare, ours = statistics.median(paints[BARE]), statistics.median(each for view in VIEWS for each in paints[view])
        print(f"all views {ours:.0f}, {ours / bare:.2f} times {BARE}: {ours - bare:+.0f} ms")
        print(f"beside {(load.sent - sent) / (time.monotonic() - begin_s):.0f} requests a second")
        print(
            f"{'left open':>13} {'requests':>10} {'CPU off':>10} {'CPU on':>10} {'more':>8} {'heap':>17} {'broker':>20}"
        )
        try:
            for view in filter(None, options.views.split(",")):
                left_open(browser, broker, load, view, options.minutes * 60)
        finally:
            load.stop()
            browser.close()


if __name__ == "__main__":
    main()
