"""`make registry-differ`: random sequences of requests to Confluent's registry and to momus', answers compared.

    ARGS="--seed 1 --cases 2000 --sources DIR --confluent URL"

Confluent's registry is compiled from its sources, as for registry-confluent, and has a momus for its Kafka; --confluent
is the address of one that is there already, --kafka of another Kafka for it. A sequence in which an answer differs is
made shorter while it still does, and printed. Where momus is another on purpose, explained.py has the reason by name.
The exit code is 1 where a difference has none.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE), str(HERE.parent / "registry_confluent")]

from answers import Line  # noqa: E402 - found by the line above
from build import built  # noqa: E402 - found by the line above
from pair import Difference, Pair  # noqa: E402 - found by the line above
from steps import sequence  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above
from tests.foreign_results import say  # noqa: E402 - found by the line above
from tests.ports import HeldPorts  # noqa: E402 - found by the line above

MAIN: Final = "io.confluent.kafka.schemaregistry.rest.SchemaRegistryMain"
TRIES, PAUSE_S = 600, 0.2  # until it has started
LETTERS: Final = 900


def told(found: Difference, seed: str) -> str:
    """A difference as it is printed."""
    lines = [f"\n## {found.kind} (seed {seed})"]
    for step in found.steps:
        lines.append(f"  {step.method} {step.path} {'' if step.body is None else json.dumps(step.body)}"[:LETTERS])
    for name, answer in (("Confluent", found.theirs), ("momus", found.ours)):
        lines.append(f"    {name:9} {answer.status} {json.dumps(answer.body)}"[:LETTERS])
    return "\n".join(lines)


@contextmanager
def confluent(path: str, kafka: str, work: Path) -> Iterator[str]:
    """Confluent's registry before a Kafka, and its URL."""
    held = HeldPorts(1)
    url = f"http://127.0.0.1:{held.numbers[0]}"
    settings = {
        "listeners": url,
        "kafkastore.bootstrap.servers": f"PLAINTEXT://{kafka}",
        "kafkastore.topic.replication.factor": "1",
        "kafkastore.timeout.ms": "20000",
        "host.name": "127.0.0.1",
        "mode.mutability": "true",
    }
    file, log = work / "registry.properties", work / "registry.log"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    words = ["java", "-Xmx600m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", path, MAIN, str(file)]
    with log.open("wb") as sink, subprocess.Popen(words, stdout=sink, stderr=sink) as process:
        try:
            if not any(_answers(process, url) for _ in range(TRIES)):
                raise RuntimeError(log.read_text(errors="replace")[-3000:])
            yield url
        finally:
            process.terminate()
            process.wait()
            held.close()


def _answers(process: subprocess.Popen[bytes], url: str) -> bool:
    """Whether a registry that has been started answers; else some time has passed, if it has not ended."""
    try:
        with urllib.request.urlopen(f"{url}/subjects", timeout=10):
            return True
    except OSError:
        with suppress(subprocess.TimeoutExpired):
            process.wait(PAUSE_S)
        return False


def compared(pair: Pair, seed: str, cases: int, most: int) -> int:
    """Compare sequences. Returns how many differ without a reason; the first `most` of each kind are printed."""
    kinds: Counter[str] = Counter()
    for number in range(cases):
        own = f"{seed}.{number}"
        found = pair.difference(sequence(random.Random(own)))
        if found is None:
            continue
        if found.reason is not None:
            pair.reasons[found.reason.name] += 1
            continue
        kinds[found.kind] += 1
        if kinds[found.kind] <= most:
            say(told(pair.shortened(found), own))
    for name, count in pair.reasons.most_common():
        say(f"  explained {count} times: {name}")
    for kind, count in kinds.most_common():
        say(f"  unexplained {count} times: {kind}")
    say(f"{cases} sequences, {pair.steps} requests to each: {sum(kinds.values())} unexplained")
    return sum(kinds.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--case", default="", help="one sequence, by the seed that was printed with it")
    parser.add_argument("--show", type=int, default=1, help="how many of each kind are printed")
    parser.add_argument("--sources", type=Path, help="a folder that has schema-registry, rest-utils and common")
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "momus" / "registry_confluent")
    parser.add_argument("--kafka", default="", help="an Apache Kafka, for Confluent's registry")
    parser.add_argument("--confluent", default="", help="the address of Confluent's registry, where it is there")
    parser.add_argument("--momus", default="", help="the address of momus' registry, where it is there")
    options = parser.parse_args()

    def run(theirs: str, ours: str) -> int:
        pair = Pair(Line(theirs), Line(ours))
        if options.case:
            found = pair.difference(sequence(random.Random(options.case)))
            say("no difference" if found is None else told(pair.shortened(found), options.case))
            return int(found is not None)
        return int(compared(pair, options.seed, options.cases, options.show) > 0)

    if options.confluent and options.momus:
        return run(options.confluent, options.momus)
    with Broker(registry=True, config={"registry.as": "8.0"}) as broker:
        ours = options.momus or broker.registry_url
        if options.confluent:
            return run(options.confluent, ours)
        path = built(options.sources, options.work)
        with Broker() as other, confluent(path, options.kafka or other.bootstrap_servers, options.work) as url:
            return run(url, ours)


if __name__ == "__main__":
    sys.exit(main())
