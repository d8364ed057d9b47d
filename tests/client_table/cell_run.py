"""One run of a cell: a cluster and a client that works on it, the fault, and what the client then does.

A producer is well when a record that it was told is written is there; a member of a group when it has read a record and
what it was told is committed is committed. An error is met as an application would: the producer sends another record,
the member reads on, and commits again, each with the same client, unless it could not be made.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TypedDict

from client_table.cells import AT_THE_START, OF_PRODUCER, Cell
from client_table.driver import Driver, HungError, RefusedError
from client_table.proof import extract
from momus import Cluster, Fault, FaultTimeoutError

TOPIC, GROUP = "orders", "billing"
LIMIT_S = 45.0  # what takes longer hangs
LEAST_S = 2.0  # that a call is waited for, so that one that began at the very end is not called hung
WARM_S = 60.0  # for what comes before the fault; ends what hangs
LOOK_S = 0.1  # between two looks at the journal
UNTOLD = ["untold"]  # what a driver answers whose client does not say whether a commit is kept
PAUSE_S = 0.2  # of an application that was told of an error
CONFIG = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1}


class Run(TypedDict, total=False):
    """What a client did. Counts that are 0, and lists that are empty, are left out.

    did      "well"; "hangs": a call had not returned after LIMIT_S; "unwell": calls returned, and it was not well
             by then; "unmet": no request met the fault; "cold": it did not work before the fault was set.
    s        seconds from the fault to well, or to the limit.
    hung     the call that did not return.
    errors   what the application was told, in the client's own names, each once.
    lost     records, or commits, that it was told are kept, and which are not.
    late     commits that were not kept when the call returned, of a client whose call tells nothing.
    skipped  records that it has passed over.
    twice    records that are in the log more than once.
    written  records that are in the log though it was told an error.
    again    records that it has read a second time.
    proof    lines of the journal, from the fault on; of what is not well, lost, skipped or twice.
    """

    did: str
    s: float
    hung: str
    errors: list[str]
    lost: int
    skipped: int
    late: int
    twice: int
    written: int
    again: int
    proof: list[str]


class _SilentError(Exception):
    """A member has sent no heartbeat that was answered well."""


class _Work:
    """The client at work on a cluster, from before the fault to the end."""

    def __init__(self, cell: Cell, driver: Driver, cluster: Cluster) -> None:
        self.cell = cell
        self.driver = driver
        self.cluster = cluster
        self.fault: Fault | None = None
        self.begun = 0.0
        self.deadline = time.monotonic() + WARM_S
        self.errors: list[str] = []
        self.is_open = False

    def set_fault(self) -> None:
        words = self.cell.fault()
        self.fault = None if words is None else self.cluster.faults.add(**words)
        self.start_clock()

    def start_clock(self) -> None:
        self.begun = time.monotonic()
        self.deadline = self.begun + LIMIT_S

    def ask(self, *words: str) -> list[str] | None:
        """A command's answer. None: the client was told an error. Errors: HungError."""
        self.driver.begin(*words)
        return self.answer(words[0])

    def answer(self, what: str) -> list[str] | None:
        try:
            return self.driver.answer(max(self.deadline, time.monotonic() + LEAST_S), what)
        except RefusedError as error:
            if not self.driver.is_usable:
                raise
            if error.name not in self.errors:
                self.errors.append(error.name)
            time.sleep(min(PAUSE_S, max(0.0, self.deadline - time.monotonic())))
            return None

    def open(self, *words: str) -> bool:
        """Make the client, if there is none. Whether there is one."""
        if not self.is_open:
            self.is_open = self.ask(words[0], self.cluster.bootstrap_servers, *words[1:]) is not None
        return self.is_open

    def is_in_time(self) -> bool:
        return time.monotonic() < self.deadline

    def counts(self) -> dict[str, int]:
        """What was lost, doubled and so on."""
        raise NotImplementedError

    def warm_up(self) -> None:
        """Until it works, and the fault is set. Errors: HungError."""
        raise NotImplementedError

    def get_well(self) -> bool:
        """Whether it was in time. Errors: HungError."""
        raise NotImplementedError


class _Producing(_Work):
    """Metadata, Produce."""

    def __init__(self, cell: Cell, driver: Driver, cluster: Cluster) -> None:
        super().__init__(cell, driver, cluster)
        self.told: dict[str, bool] = {}  # value -> was it acknowledged

    def warm_up(self) -> None:
        if self.cell.api not in AT_THE_START:
            while not (self.open("producer") and self.send()):
                pass
        self.errors.clear()
        self.set_fault()

    def send(self) -> bool:
        value = f"order {len(self.told)}"
        self.told[value] = False
        self.told[value] = self.ask("produce", value) is not None
        return self.told[value]

    def get_well(self) -> bool:
        while self.is_in_time():
            if self.open("producer") and self.send():
                return True
        return False

    def counts(self) -> dict[str, int]:
        there = Counter(str(record.value, "utf-8") for record in self.cluster.consume(TOPIC) if record.value)
        return {
            "lost": sum(is_told and not there[value] for value, is_told in self.told.items()),
            "twice": sum(count > 1 for count in there.values()),
            "written": sum(bool(there[value]) for value, is_told in self.told.items() if not is_told),
        }


class _Reading(_Work):
    """FindCoordinator, Fetch, OffsetCommit, Heartbeat."""

    def __init__(self, cell: Cell, driver: Driver, cluster: Cluster) -> None:
        super().__init__(cell, driver, cluster)
        self.read: Counter[int] = Counter()  # offset -> how often
        self.end = 0  # of the partition
        self.lost = self.late = 0
        self.members: list[str] = []  # as the fault was set
        self.has_read = False  # what was set off has been read, and is to be committed

    def add_record(self) -> None:
        self.cluster.produce(TOPIC, f"order {self.end}")
        self.end += 1

    def take(self, answer: list[str] | None) -> bool:
        """Whether it was the partition's last record."""
        if answer is None:
            return False
        self.read[int(answer[0])] += 1
        return int(answer[0]) == self.end - 1

    def commit(self) -> bool:
        """Whether it was told that it has committed, and has."""
        self.driver.begin("commit")
        if self.cell.api == "OffsetCommit" and self.fault is not None:
            self.throw_out(self.fault)
        told = self.answer("commit")
        if told is None:
            return False
        is_kept = self.cluster.committed(GROUP).get((TOPIC, 0), 0) == self.end
        if not is_kept:
            self.late += told == UNTOLD
            self.lost += told != UNTOLD
        return is_kept

    def read_on(self) -> bool:
        """Whether it has come to the end, which is one record further."""
        if all(self.read[offset] for offset in range(self.end)):
            self.add_record()
        return self.open("consumer", GROUP) and self.take(self.ask("consume"))

    def warm_up(self) -> None:
        if self.cell.api not in AT_THE_START:
            while not (self.read_on() and self.commit()):
                pass
        self.errors.clear()
        self.lost = self.late = 0
        self.read = Counter(dict.fromkeys(self.read, 1))
        if self.cell.api == "OffsetCommit":
            while not self.read_on():
                pass
            self.has_read = True
        if self.cell.api not in AT_THE_START:
            self.members = self.cluster.wait_for_group(GROUP)
        self.set_fault()
        if self.fault is not None and self.cell.api in ("Fetch", "Heartbeat"):
            self.meet(self.fault)

    def meet(self, fault: Fault) -> None:
        """It waits for records, as most members do most of the time, until a request has met the fault."""
        if self.cell.api == "Fetch":  # a request that waited already does not meet it, and is answered now
            self.read_on()
        is_met = fault.hits > 0
        self.driver.begin("consume")
        fault.wait_until_hit(timeout=LIMIT_S)
        if not is_met:
            self.start_clock()
        self.throw_out(fault)
        if self.cell.api == "Heartbeat":
            self.wait_for_heartbeat()
        self.add_record()
        self.has_read = self.take(self.answer("consume"))

    def throw_out(self, fault: Fault) -> None:
        """Let UNKNOWN_MEMBER_ID be true: else the new member waits until the session of the old one has ended."""
        if self.cell.row == "UNKNOWN_MEMBER_ID" and self.members:
            fault.wait_until_hit(timeout=LIMIT_S)
            for member in self.members:
                self.cluster.expel_member(GROUP, member)
            self.members.clear()

    def wait_for_heartbeat(self) -> None:
        """Until one is answered without an error: a member may read and commit for a while before it is thrown out.

        Errors: _SilentError.
        """
        while self.is_in_time():
            last = self.cluster.journal.entries(api="Heartbeat", limit=1)[0]
            if not last["errors"] and "fault" not in last and last["latency_ms"] is not None:
                return
            if self.driver.has_answered():
                self.answer("consume")  # an error: there is nothing to read
                self.driver.begin("consume")
            time.sleep(LOOK_S)
        raise _SilentError

    def get_well(self) -> bool:
        while self.is_in_time():
            if (self.has_read or self.read_on()) and self.commit():
                return True
            self.has_read = False
        return False

    def counts(self) -> dict[str, int]:
        return {
            "lost": self.lost,
            "late": self.late,
            "skipped": sum(not self.read[offset] for offset in range(max(self.read, default=0))),
            "again": sum(max(0, count - 1) for count in self.read.values()),
        }


def run(cell: Cell, driver: Driver, cluster: Cluster) -> Run:
    """What the client does. The driver may not be usable any more after it."""
    cluster.create_topic(TOPIC)
    work = (_Producing if cell.api in OF_PRODUCER else _Reading)(cell, driver, cluster)
    found: Run = {"did": "cold", "s": 0.0}
    try:
        work.warm_up()
        found["did"] = "well" if work.get_well() else "unwell"
    except FaultTimeoutError:
        found["did"] = "unmet"
        driver.kill()
    except HungError as hung:
        if work.begun:
            found["did"], found["hung"] = "hangs", str(hung)
    except _SilentError:
        found["did"] = "unwell"
        work.errors.append("no heartbeat")
        driver.kill()
    except RefusedError as error:  # the process has ended
        found["did"] = "unwell"
        work.errors.append(error.name)
    found["s"] = round(time.monotonic() - work.begun, 2) if work.begun else 0.0
    if work.fault is not None and found["did"] == "well" and not work.fault.hits:
        found["did"] = "unmet"
    if work.errors:
        found["errors"] = work.errors
    counts = work.counts()
    for name, count in counts.items():
        if count:
            found[name] = count  # type: ignore[literal-required]  # these are keys of it
    is_whole = found["did"] == "well" and not (counts["lost"] or counts.get("skipped") or counts.get("twice"))
    if not is_whole:
        found["proof"] = extract(cluster)
    if driver.is_usable:
        driver.close_client()
    else:
        driver.kill()
    return found
