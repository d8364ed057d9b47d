"""Apache Kafka's answers to thousands of requests, in a file a profile: momus is compared with them without a Kafka.

A line for each case: its family, its steps, the prefix of its names (their hashes choose coordinators), and what Kafka
answered: number of the step, answer, and for a late answer the number of the step after which it came.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from differential.brokers import Peer
from differential.compare import error_codes
from differential.links import Link
from differential.pair import Pair
from differential.plain import Plain, Values, words
from differential.play import Play
from differential.side import Sent, Side

APART: Final = Path("build/differential/apart.jsonl")
SHORT_MS: Final = 400  # a rebalance that ends within a case
LOG_APIS: Final = words(
    "Produce Fetch ListOffsets DescribeLogDirs DescribeProducers OffsetForLeaderEpoch DeleteRecords"
)
HERE_NOW: Final = b"\0"  # stands for the bytes of a recorded answer


class Kept(NamedTuple):
    """Where the answers of a profile are kept, about how many pairs are chosen, and from how many that are played."""

    path: Path
    pairs: int
    candidates: int


KEPT: Final = {
    "default": Kept(Path(__file__).parent / "recorded.jsonl.xz", 5000, 14_000),
    "share": Kept(Path(__file__).parent / "recorded_share.jsonl.xz", 2000, 5000),
}


class Recorded(NamedTuple):
    """One case with Kafka's answers."""

    family: str
    prefix: str
    steps: list[Values]
    answers: dict[int, Values]  # at once; a step without one waits, or has no answer
    late: dict[int, tuple[int, Values]]  # step -> after which step, and the answer


class Recorder(Play):
    """Plays a case to its end, whatever differs, and keeps what Kafka answers."""

    def _judge(self, number: int, step: Values, answers: list[Values], late: bool) -> bool:
        kafka, momus = answers
        after = self.at - 1
        self.kept.append([number, kafka, after] if late else [number, kafka])
        super()._judge(number, step, [kafka, momus], late)
        self.tainted.clear()
        return True

    kept: list[list[object]]


def stands_alone(steps: list[Values]) -> bool:
    """Whether a case is the same each time: neither time nor what other cases have written plays a part in it."""
    for step in steps:
        if "do" in step or step["b"].get("RebalanceTimeoutMs") == SHORT_MS:
            return False
        if step["api"] in LOG_APIS and "&" in json.dumps(step["b"]):
            return False
        if step["api"] == "DescribeLogDirs" and not step["b"].get("Topics"):
            return False
        if step["api"] == "DescribeUserScramCredentials" and not step["b"].get("Users"):
            return False
        if step["api"] == "ListTransactions" and step["b"].get("DurationFilter", -1) != -1:
            return False
    return True


def record(pair: Pair, family: str, steps: list[Values]) -> tuple[str, int]:
    """The line of a case, and how many pairs it has."""
    play = Recorder(pair.begin(steps).sides, steps, pair.allow)
    play.kept = []
    try:
        play.run()
    finally:
        for side in play.sides:
            side.close()
        play.settler.clean()
    prefix = play.sides[0].symbols.prefix
    row = {"family": family, "prefix": prefix, "steps": steps, "answers": play.kept}
    line = json.dumps(row, separators=(",", ":"), ensure_ascii=False)
    return line, play.outcome.pairs


def features(steps: list[Values], line: str) -> set[str]:
    """What a case shows of Kafka: of each API the kinds of values in its fields, of each version the codes."""
    found = set()
    for number, answer, *_ in json.loads(line)["answers"]:
        step = steps[number]
        level = step.get("b", {}).get("IsolationLevel", "")
        found |= {f"{step['api']} {level} {each}" for each in _leaves(answer, "")}
        found.add(f"{step['api']} v{step['v']} {sorted(set(map(str, error_codes(answer))))}")
    return found


def _leaves(value: Plain, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path}#{min(len(value), 3)}"
        for each in value:
            yield from _leaves(each, path + "[]")
    else:
        yield f"{path} {value if isinstance(value, int) and -2 <= value <= 3 else type(value).__name__}"


def choose(played: list[tuple[str, int, set[str]]], pairs: int) -> list[str]:
    """The lines of cases that together show the most in so many pairs: the best for its length first."""
    seen: set[str] = set()
    chosen: list[str] = []
    left = list(played)
    while pairs > 0 and left:
        best = max(left, key=lambda each: len(each[2] - seen) / (each[1] + 1))
        left.remove(best)
        line, count, shown = best
        seen |= shown
        chosen.append(line)
        pairs -= count
    return chosen


def write(lines: list[str], path: Path) -> None:
    """Replace the file."""
    path.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))


def read(profile: str = "default") -> Iterator[Recorded]:
    """The cases in the file of a profile."""
    for line in lzma.decompress(KEPT[profile].path.read_bytes()).decode().splitlines():
        yield parsed(line)


def parsed(line: str) -> Recorded:
    """A case of its line."""
    row = json.loads(line)
    answers = {each[0]: each[1] for each in row["answers"] if len(each) == 2 and "parked" not in each[1]}
    late = {each[0]: (each[2], each[1]) for each in row["answers"] if len(each) == 3}
    return Recorded(row["family"], row["prefix"], row["steps"], answers, late)


def set_apart(lines: list[str]) -> Path:
    """Keep the lines of cases that differ, to be looked at."""
    APART.parent.mkdir(parents=True, exist_ok=True)
    APART.write_text("\n".join(lines))
    return APART


class _NoBroker:
    """Stands where Kafka was."""

    name = "kafka"
    nodes = 1
    is_live = False

    def link(self, node: int) -> Link:
        raise NotImplementedError

    def now_ms(self) -> int:
        return 0

    def pass_time(self, ms: int) -> None:
        """Its answers are written down."""

    def keep_up(self) -> None:
        """Its answers are written down."""

    def restart(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """There is nothing to stop."""


class _RecordedLink:
    """Has the answer to one request when its time has come."""

    correlation_id = 0
    is_open = True

    def __init__(self, side: RecordedSide, number: int) -> None:
        self._side = side
        self._number = number
        self._is_taken = False

    def send(self, frame: bytes) -> None:
        raise NotImplementedError

    def take(self) -> bytes | None:
        if self._is_taken or not self._side.is_here(self._number):
            return None
        self._is_taken = True
        return HERE_NOW

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        """Nothing is open."""


class RecordedSide(Side):
    """Kafka's side of a case, from the file."""

    is_connected = False

    def __init__(self, case: Recorded, prefix: str, lasting: str) -> None:
        peer: Peer = _NoBroker()
        super().__init__(peer, None, prefix, lasting, {})  # type: ignore[arg-type]  # it never routes a request
        self._case = case
        self._at = 0

    def is_here(self, number: int) -> bool:
        """Whether Kafka had answered a step by now."""
        if number in self._case.answers:
            return True
        return number in self._case.late and self._case.late[number][0] <= self._at

    def send(self, number: int, step: Values) -> Sent:
        self._at = number
        return Sent(number, step, step.get("b", {}), _RecordedLink(self, number))

    def read(self, sent: Sent, data: bytes) -> Values:
        found = self._case.answers.get(sent.number)
        return found if found is not None else self._case.late[sent.number][1]

    def ask(self, api: str, version: int, body: Values, node: int = 0) -> Values:
        raise NotImplementedError


def replay(pair: Pair, case: Recorded) -> Play:
    """Compare momus, alone in the pair, with what Kafka answered to a case. Its outcome is in the Play."""
    (momus,) = pair.begin(case.steps, prefix=case.prefix).sides
    play = Play([RecordedSide(case, momus.symbols.prefix, momus.symbols.lasting), momus], case.steps, pair.allow)
    play.run()
    momus.close()
    play.settler.clean()
    return play
