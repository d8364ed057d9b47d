"""A page in headless Chromium: its tables, what its console said, whom it asked, and axe-core's findings."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clientwork import until
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from momus import Broker

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
BUILD = Path(__file__).parents[3] / "build"
AXE = "4.14.1"
AXE_SHA256 = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"
LIMIT_MS = 60_000
ANSWER_S = 30  # of a client
TEST_S = 240  # of a test, by which a wait of the browser itself ends, with what each thread waits for
TABLE = """(of) => {
  const table = document.querySelector(`table[data-of="${of}"]`);
  if (!table) return null;
  const titles = [...table.tHead.rows[0].cells].map((each) => each.textContent);
  return [...table.tBodies[0].rows].filter((row) => !row.ariaHidden)
    .map((row) => Object.fromEntries([...row.cells].map((cell, n) => [titles[n], cell.textContent])));
}"""

VIEWS = (
    "overview",
    "timeline",
    "topics",
    "groups",
    "journal",
    "faults",
    "transactions",
    "schemas",
    "security",
    "cluster",
)


def axe_source() -> str:
    """axe-core's script, fetched by npm once; it must be the one whose hash is written here."""
    archive = BUILD / f"axe-core-{AXE}.tgz"
    if not archive.exists():
        BUILD.mkdir(exist_ok=True)
        command = ["npm", "pack", "--silent", "--pack-destination", str(BUILD), f"axe-core@{AXE}"]
        subprocess.run(command, check=True, timeout=300, stdout=subprocess.DEVNULL)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == AXE_SHA256, archive
    with tarfile.open(archive) as found:
        member = found.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


def topics_of(admin: AdminClient, *names: str) -> dict[str, Any]:
    """The cluster's topics, or one. Without a limit of ours the client may wait for them for ever."""
    found: dict[str, Any] = admin.list_topics(*names, timeout=ANSWER_S).topics
    return found


class Look:
    """One tab. What its console says and whom it asks is kept."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.console: list[str] = []
        self.asked: list[str] = []
        page.set_default_timeout(LIMIT_MS)
        page.on("console", lambda said: self.console.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: self.console.append(f"uncaught: {error}"))
        page.on("request", lambda request: self.asked.append(request.url))

    def open(self, broker: Broker, path: str) -> Any:
        """Go to a view: "topics/orders"."""
        self.page.goto(f"http://{broker.control.address}/ui#/default/{path}")
        self.page.wait_for_selector("h1")
        return self.page

    def leave(self) -> None:
        """Go nowhere, before the broker ends: its end is no error of the page."""
        self.page.goto("about:blank")
        self.asked = [url for url in self.asked if url != "about:blank"]

    def rows(self, of: str) -> list[dict[str, str]]:
        """A table by the titles of its columns; waits until it is there with a row."""
        found: list[list[dict[str, str]]] = []

        def look() -> bool:
            found[:] = [self.page.evaluate(TABLE, of) or []]
            return bool(found[0])

        try:
            until(look, f"the table {of} has rows", LIMIT_MS / 1000)
        except AssertionError as error:
            text = self.page.locator("body").inner_text()
            raise AssertionError(f"{error}; the page at {self.page.url}: {text}; asked {self.asked[-8:]}") from None
        return found[0]

    def agrees(self, of: str, expected: Callable[[], Any], shown: Callable[[list[dict[str, str]]], Any]) -> None:
        """Wait until the page shows what the broker's admin API answers now."""
        seen: list[Any] = []

        def holds() -> bool:
            wanted = expected()
            seen[:] = [shown(self.rows(of)), wanted]
            return bool(seen[0] == wanted)

        try:
            until(holds, f"{of}", 20)
        except AssertionError:
            raise AssertionError(f"the page shows {seen[0]}, the admin API says {seen[1]}") from None

    def follows(self, of: str, expected: Callable[[], int], shown: Callable[[list[dict[str, str]]], int]) -> None:
        """Under load: the page comes to what the admin API said before, and is never ahead of it."""
        for _ in range(3):
            before, seen = expected(), [-1]

            def reached(before: int = before, seen: list[int] = seen) -> bool:
                seen[0] = shown(self.rows(of))
                return seen[0] >= before

            until(reached, f"{of} comes to {before}", 20)
            assert seen[0] <= expected()

    def findings(self) -> list[str]:
        """What axe-core finds wrong, however small."""
        self.page.evaluate(axe_source())
        found = self.page.evaluate("axe.run()")
        return [f"{each['id']}: {node['html'][:200]}" for each in found["violations"] for node in each["nodes"]]


class Load:
    """A thread that produces until it is stopped, or that calls `step` again and again."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(step,), daemon=True)

    def _run(self, step: Callable[[], None]) -> None:
        while not self._stop.wait(0.01):
            step()

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(2 * ANSWER_S)
        assert not self._thread.is_alive(), f"the load did not end within {2 * ANSWER_S} s"


def producing(broker: Broker, topic: str, partitions: int) -> Callable[[], None]:
    """A step of load: a few records on each partition, acknowledged."""
    producer = Producer({**broker.client_config("confluent"), "linger.ms": 0})

    def step() -> None:
        for partition in range(partitions):
            producer.produce(topic, b"coffee" * 10, b"table", partition)
        producer.flush(ANSWER_S)

    return step
