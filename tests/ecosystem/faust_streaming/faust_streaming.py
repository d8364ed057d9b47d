"""Faust: an application counts words in a table that lives in memory; when it starts again, the table comes back from
its changelog, and the counts go on."""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above

PARTITIONS = 2
WORDS = 10
RECORDS = 3000  # before and again after the restart


def prove() -> str:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(Broker())
        bootstrap = broker.bootstrap_servers
        kit.make_topic(bootstrap, "words", PARTITIONS)
        kit.make_topic(bootstrap, "counts")
        words = [f"word-{number % WORDS}" for number in range(RECORDS)]
        log = folder / "faust.log"
        command = (kit.virtual_environment(HERE), HERE / "counting.py", bootstrap)
        program = stack.enter_context(kit.Program(command, log, cwd=folder))
        for seen in (RECORDS, 2 * RECORDS):
            kit.write(bootstrap, "words", words, PARTITIONS)
            kit.until(lambda: len(kit.read(bootstrap, "counts")[0]) >= seen, f"{seen} are counted")  # noqa: B023 - called in this round
            program.stop()
            if seen == RECORDS:
                broker.restart()
                program.start()
        sent = kit.read(bootstrap, "counts")[0]
        by_word: dict[str, list[int]] = {f"word-{number}": [] for number in range(WORDS)}
        for line in sent:
            word, _, count = line.partition(" ")
            by_word[word].append(int(count))
        each = Counter(words).popitem()[1]
        assert by_word == {word: list(range(1, 2 * each + 1)) for word in by_word}
        return (
            f"{2 * RECORDS:,} words counted in a table in memory, application and broker started again half-way: "
            "the table comes back from its changelog; each word's counts are 1, 2, 3 … without gap or repetition"
        )


if __name__ == "__main__":
    found = re.search(r"^faust-streaming==(\S+)", (HERE / "requirements.txt").read_text(), re.MULTILINE)
    assert found
    kit.run("Faust (faust-streaming)", found[1], prove)
