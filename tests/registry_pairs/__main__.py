"""`make registry-pairs`: random pairs of schemas judged by momus, by Confluent's own code, and by Karapace.

    ARGS="--pairs 2000 --first 0 --confluent DIR --karapace DIR --python DIR/bin/python"

A pair is judged at each of the seven levels. Confluent's client (7.5.3, within a jar of Flink on Maven Central) must
agree on Avro word for word: canonical form, normalized form and messages. With --confluent (a checkout of Confluent's
repository schema-registry, of which the parsers of schemas are compiled) so must they on all three formats, and the
pairs by which Confluent tests its own rules are judged too. Karapace (its sources in DIR; an environment with what they
import) must agree whether a schema fits. What differs must have a reason in explained.py: what has none is printed,
and the exit code is 1. Karapace's module in Go (protopace) needs its authors' fork of buf, which `go mod edit -replace`
takes from a checkout; a stand-in whose format_proto returns what it is given does too: it only formats. Its
`src/karapace/version.py` is made by its build, and is written by hand in a checkout: `__version__ = "6.2.0"`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE), str(HERE.parent / "ecosystem")]

from cases import Case, against_vectors, judged  # noqa: E402 - found by the line above
from explained import AGREED, OF_CLIENT, OF_KARAPACE, OF_PARSERS  # noqa: E402 - found by the line above
from judges import of_client, of_karapace, of_parsers  # noqa: E402 - found by the line above
from pairs import FORMATS, LEVELS  # noqa: E402 - found by the line above

SHOWN = 10


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Verdict:
    """What differs from one judge."""

    def __init__(self, whom: str, cases: int) -> None:
        self.whom, self.cases = whom, cases
        self.reasons: Counter[str] = Counter()
        self.unexplained: list[str] = []

    def take(self, rows: Iterable[tuple[Case, str]], explained: dict[str, Callable[[Any, str], bool]]) -> Verdict:
        """Find the reason of each difference."""
        for case, how in rows:
            why = next((name for name, holds in explained.items() if holds(case, how)), "")
            if why:
                self.reasons[f"{case.pair.schema_type}: {why}"] += 1
            else:
                kind = f"{self.whom}, {case.pair.schema_type} {case.number} {case.level}"
                self.unexplained.append(f"{kind}: {how}\n{case.pair.old}\n{case.pair.new}")
        return self

    def say(self) -> int:
        """Print it. Returns how many differences have no reason."""
        outcome = f"{sum(self.reasons.values())} differ with a reason, {len(self.unexplained)} without"
        say(f"{self.whom} judged {self.cases}: {outcome}")
        for reason, count in self.reasons.most_common():
            say(f"  {count} {reason}")
        for text in self.unexplained[:SHOWN]:
            say(f"\n{text}")
        return len(self.unexplained)


def of_vectors(folder: Path) -> int:
    """Print how the pairs of Confluent's own tests are judged. Returns how many differ."""
    rows = list(against_vectors(folder))
    differ = [(name, how) for name, how in rows if how]
    say(f"{len(rows)} pairs of Confluent's own tests: {len(differ)} differ")
    for name, how in differ[:SHOWN]:
        say(f"\n{name}: {how}")
    return len(differ)


def _key(case: Case) -> tuple[str, int, str]:
    return case.pair.schema_type, case.number, case.level


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2000, help="of each format")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--confluent", type=Path)
    parser.add_argument("--karapace", type=Path)
    parser.add_argument("--python", default=sys.executable, help="one that can import Karapace")
    options = parser.parse_args()
    cases = judged(range(options.first, options.first + options.pairs))
    say(f"{options.pairs} pairs x {len(FORMATS)} formats x {len(LEVELS)} levels: {len(cases)} judged by momus")
    avro = [each for each in cases if each.pair.schema_type == "AVRO"]
    left = Verdict("Confluent's client 7.5.3", len(avro)).take(of_client(avro), OF_CLIENT).say()
    explained = dict(OF_KARAPACE)
    if options.confluent:
        found = list(of_parsers(cases, options.confluent))
        left += Verdict("Confluent's parsers", len(cases)).take(found, OF_PARSERS).say()
        left += of_vectors(options.confluent)
        other = {_key(case) for case, how in found if not any(holds(case, how) for holds in OF_PARSERS.values())}
        explained[AGREED] = lambda case, _: _key(case) not in other
    if options.karapace:
        told = of_karapace(cases, options.karapace, options.python)
        left += Verdict("Karapace", len(cases)).take(told, explained).say()
    return bool(left)


if __name__ == "__main__":
    sys.exit(main())
