"""`make client-table`: what seven clients do when they meet errors and faults, written into docs/clients.md.

    ARGS="--client sarama --row NOT_COORDINATOR --again"

What was found is kept in docs/clients.json after each run, so that it goes on where it was stopped; the page is made
from that file. A cell is run three times, each in a cluster of its own. Twelve are run at once: a client mostly waits.
Results of another version of a client are dropped when it is run.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator

from client_table import known
from client_table.cell_run import CONFIG, run
from client_table.cells import APIS, CLIENTS, NONE, ROWS, Cell, cells
from client_table.driver import Driver, NotRunError
from client_table.page import PAGE, page, survived
from client_table.results import Results
from client_table.watch import Watch
from momus import Broker

RUNS = 3
LANES = 12
JOURNAL_MB = 1
TRIES = 4  # of a run during which the machine stood still; it is missing then


class Table:
    """The runs that are still to be made, and the lanes that make them."""

    def __init__(self, broker: Broker, results: Results, wanted: list[Cell], minutes: float) -> None:
        self.broker = broker
        self.watch = Watch(broker)
        self.results = results
        self.ends = time.monotonic() + 60 * minutes
        self._wanted = self._missing(wanted)
        self._lock = threading.Lock()

    def _missing(self, wanted: list[Cell]) -> Iterator[Cell]:
        for cell in wanted:
            for _ in range(RUNS - len(self.results.runs(cell))):
                yield cell

    def work(self) -> None:
        """One lane: a run after the other, all of a client in one process for as long as that serves."""
        driver: Driver | None = None
        while time.monotonic() < self.ends:
            with self._lock:
                cell = next(self._wanted, None)
            if cell is None:
                break
            for _ in range(TRIES):
                driver = self._driver_of(cell.client, driver)
                begun = time.monotonic()
                try:
                    with self.broker.create_cluster(config=CONFIG, journal_mb=JOURNAL_MB) as cluster:
                        cluster.verifies = False  # that a fault did not act is a finding of the cell
                        found = run(cell, driver, cluster)
                except Exception:  # of this run: it is missing, and the lane goes on
                    traceback.print_exc()
                    driver.kill()
                    continue
                if self.watch.stood_still(begun):
                    self.say(f"{cell.key}  again, for the machine stood still")
                elif found["did"] == "cold":
                    self.results.add_cold(cell.client, found)
                    self.say(f"{cell.key}  again, for it hung before the fault was set")
                else:
                    self.results.add(cell, driver.said, found)
                    self.say(f"{cell.key}  {found['did']} {found['s']} s {' '.join(found.get('errors', []))}")
                    break
        if driver is not None:
            driver.kill()

    def _driver_of(self, client: str, driver: Driver | None) -> Driver:
        """The lane's driver, if it is one of this client and can go on; else a new one, which has worked a little: what
        it takes to load a client's classes is no part of a run."""
        if driver is not None:
            if driver.client == client and driver.is_usable:
                return driver
            driver.kill()
        made = Driver(client)
        for api in ("Produce", "OffsetCommit"):
            with self.broker.create_cluster(config=CONFIG) as cluster:
                cluster.verifies = False
                run(Cell(client, api, NONE), made, cluster)
        return made if made.is_usable else Driver(client)

    @staticmethod
    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def tell(results: Results, more: bool) -> None:
    """The stories of known.py that are not told yet; `more`: all, more runs of each."""
    told = results.content.setdefault("known", {})
    for story in (known.commit, known.send_offsets):
        if more or story.__name__ not in told:
            told[story.__name__] = known.rounds(story, told.get(story.__name__))


def main(words: list[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--client", action="append", choices=CLIENTS)
    options.add_argument("--api", action="append", choices=APIS)
    options.add_argument("--row", action="append", choices=ROWS)
    options.add_argument("--again", action="store_true", help="drop what is kept of these cells")
    options.add_argument("--lanes", type=int, default=LANES)
    options.add_argument("--minutes", type=float, default=60)
    options.add_argument("--known", action="store_true", help="more runs of what the cells do not show")
    options.add_argument("--page", action="store_true", help="only make the page from the file")
    given = options.parse_args(words)
    results = Results()
    wanted = [
        cell
        for cell in cells(tuple(given.client or CLIENTS))
        if cell.api in (given.api or APIS) and cell.row in (given.row or ROWS)
    ]
    if not given.page:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        for client in dict.fromkeys(cell.client for cell in wanted):
            said = Driver(client)
            results.is_of(client, said.said)
            said.kill()
        if given.again:
            results.drop(wanted)
        began = time.monotonic()
        stories = threading.Thread(target=tell, args=(results, given.known))
        if not (given.client or given.api or given.row) or given.known:
            stories.start()
        with Broker(flush="memory") as broker:
            table = Table(broker, results, wanted, given.minutes)
            lanes = [threading.Thread(target=table.work) for _ in range(given.lanes)]
            for lane in lanes:
                lane.start()
            for lane in lanes:
                lane.join()
            table.watch.stop()
        if stories.ident is not None:
            stories.join()
        results.took(time.monotonic() - began)
    results.content["survived"] = survived(results.content)
    results.save()
    PAGE.write_text(page(results.content), encoding="utf-8")
    missing = sum(RUNS - len(results.runs(cell)) for cell in cells())
    sys.stdout.write(f"{missing} runs are missing\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except NotRunError as reason:
        sys.exit(f"NOT RUN: {reason}")
