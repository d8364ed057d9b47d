"""Mutation tests: change one thing in the source, run the tests that should notice, and list what no test noticed.

    python tools/mutants.py --seed 1 --sample 500 --workers 2 [--resume build/mutants-1.jsonl]

Cosmic Ray's operators make the mutants. Its own runner is not used: it runs all mutants, in the working tree, with one
test command for every module. mutmut draws no sample, and leaves out what runs when a module is imported. Here each
worker has a copy of the tree in build/mutants/ and tests one mutant of a seeded sample at a time, with the tests that
TARGETS maps its module to. A mutant is killed if one of them fails, or if they take four times as long as without it.
Where a line stays the same, so does what the sample has of it.

Each result is appended as a line of JSON; --resume keeps the results of such a file whose source is the same. Survivors
that no test can kill are listed with the reason in tests/mutants_survivors.toml.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from mutants_targets import NOT_MEANT, TARGETS

ROOT = Path(__file__).resolve().parent.parent
KNOWN = ROOT / "tests" / "mutants_survivors.toml"
TIMES_AS_LONG, START_SECONDS = 4, 20
# Operators that make no difference where numbers are small, or are named once in the interpreter.
SAME = ("_Eq_Is", "_NotEq_IsNot", "_Is_Eq", "_IsNot_NotEq")


@dataclass(frozen=True)
class Mutant:
    """One change: the n-th place in a file where an operator of Cosmic Ray applies."""

    file: str
    operator: str
    occurrence: int
    line: int
    source: str  # digest of the file it was made from
    place: str  # the line's text, and a number where the operator applies there more than once

    @property
    def name(self) -> str:
        """The mutant as file, line and change, which reports and the list of survivors use."""
        return f"{self.file}:{self.operator}:{self.occurrence}:{self.source}"


def targets() -> dict[str, list[str]]:
    """File -> tests."""
    found: dict[str, list[str]] = {}
    for pattern, tests in TARGETS.items():
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            if name not in NOT_MEANT and path.name != "__init__.py":
                found.setdefault(name, tests)
    return found


def without_effect(source: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The places that say nothing at run time: annotations, and what only type checkers see."""
    for node in ast.walk(ast.parse(source)):
        inert: list[Any] = []
        if isinstance(node, ast.arg | ast.AnnAssign):
            inert = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            inert = [node.returns]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            inert = [node]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0])[0].isupper() and "|" in ast.unparse(node):
            inert = [node]  # a type alias
        for each in inert:
            if each is not None:
                yield (each.lineno, each.col_offset), (each.end_lineno, each.end_col_offset)


def mutants_of(file: str) -> Iterator[Mutant]:
    """Every mutant of a file but those that cannot have an effect."""
    source = (ROOT / file).read_text()
    digest = hashlib.blake2b(source.encode(), digest_size=6).hexdigest()
    inert = list(without_effect(source))
    tree = get_ast(source)
    lines = source.splitlines()
    for name in sorted(operator_names()):
        operator_class = get_operator(name)
        if operator_class.arguments() or name.endswith(SAME):
            continue
        operator = operator_class()
        places = (place for node in ast_nodes(tree) for place in operator.mutation_positions(node))
        seen: Counter[str] = Counter()
        for occurrence, (start, end) in enumerate(places):
            text = lines[start[0] - 1].strip()
            seen[text] += 1
            if not any(first <= start and end <= last for first, last in inert):
                yield Mutant(file, name, occurrence, start[0], digest, f"{text} {seen[text]}")


def sample_of(mutants: Sequence[Mutant], seed: int, count: int) -> list[Mutant]:
    """Some mutants, by a digest of each one's line: a change of other lines does not change which ones they are."""

    def rank(mutant: Mutant) -> bytes:
        text = f"{seed} {mutant.file} {mutant.operator} {mutant.place}"
        return hashlib.blake2b(text.encode(), digest_size=8).digest()

    return sorted(mutants, key=rank)[:count]


def mutated(mutant: Mutant, source: str) -> tuple[str, str]:
    """The mutant's source, and what differs as lines of a diff."""
    changed: str = mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)
    lines = difflib.unified_diff(source.splitlines(), changed.splitlines(), lineterm="", n=0)
    return changed, "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


class Worker:
    """A copy of the tree in which one mutant at a time is tested."""

    def __init__(self, number: int) -> None:
        self.root = ROOT / "build" / "mutants" / str(number)
        shutil.rmtree(self.root, ignore_errors=True)
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
        for name in filter(None, files.split("\0")):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.root / name)
        where = [sys.executable, "-c", "import broker, storage; print(broker.__file__, storage.__file__)"]
        found = subprocess.run(where, cwd=self.root, capture_output=True, check=True, text=True).stdout.split()
        assert all(path.startswith(str(self.root)) for path in found), f"the copy is not what is imported: {found}"

    def run(self, tests: Sequence[str], seed: int, timeout_s: float) -> tuple[str, float]:
        """What the tests say: "passed", "failed" or "timeout"; and the seconds they took."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
        command += ["-m", "not slow", f"--hypothesis-seed={seed}", *dict.fromkeys(tests)]
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env={**os.environ, "MOMUS_HYPOTHESIS": "mutants"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            outcome = "failed" if process.wait(timeout_s) else "passed"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            outcome = "timeout"
        return outcome, time.monotonic() - began

    def test(self, mutant: Mutant, tests: Sequence[str], seed: int, timeout_s: float) -> dict[str, Any]:
        """The result for one mutant, as it is kept."""
        path = self.root / mutant.file
        source = path.read_text()  # the copy's: the tree may be edited meanwhile
        changed, diff = mutated(mutant, source)
        try:
            self._write(path, changed)
            outcome, seconds = self.run(tests, seed, timeout_s)
        finally:
            self._write(path, source)
        return {**asdict(mutant), "name": mutant.name, "outcome": outcome, "seconds": round(seconds, 1), "diff": diff}

    @staticmethod
    def _write(path: Path, source: str) -> None:
        path.write_text(source)
        for compiled in path.parent.glob(
            f"__pycache__/{path.stem}.*.pyc"
        ):  # of the same second, maybe of the same size
            compiled.unlink()


def baseline(worker: Worker, wanted: Iterable[Sequence[str]], seed: int) -> dict[str, float]:
    """Seconds that each of the tests takes without a mutant. Errors: SystemExit: one fails."""
    every = sorted({each for tests in wanted for each in tests})
    found = worker.root / "build" / "baseline.xml"
    outcome, seconds = worker.run([*every, f"--junit-xml={found}"], seed, 3600)
    if outcome != "passed":
        raise SystemExit(f"some of these fail without a mutant: {' '.join(every)}")
    took = dict.fromkeys(every, 0.0)
    for case in ElementTree.parse(found).iter("testcase"):
        for each in every:
            if case.attrib["classname"].replace(".", "/").startswith(each.removesuffix(".py")):
                took[each] += float(case.attrib["time"])
    print(f"the tests pass without a mutant, in {seconds:.0f} s", flush=True)
    return took


def known_survivors() -> dict[tuple[str, str], str]:
    """(file, diff) -> why no test can kill it."""
    listed = tomllib.loads(KNOWN.read_text()).get("survivor", []) if KNOWN.exists() else []
    return {(each["file"], each["diff"].strip("\n")): each["reason"] for each in listed}


def report(results: Sequence[dict[str, Any]], survivors: dict[tuple[str, str], str]) -> float:
    """Print the figures and the survivors; the share that was killed of those that can be."""
    lived = [each for each in results if each["outcome"] == "passed"]
    listed = [each for each in lived if (each["file"], each["diff"]) in survivors]
    for each in sorted(lived, key=lambda each: (each["file"], each["line"])):
        why = survivors.get((each["file"], each["diff"]))
        print(f"\n{each['file']}:{each['line']} {each['operator']}" + (f"\n  listed: {why}" if why else ""))
        print(each["diff"])
    by_folder: Counter[str] = Counter(Path(each["file"]).parent.as_posix() for each in results)
    for folder, count in sorted(by_folder.items()):
        alive = sum(Path(each["file"]).parent.as_posix() == folder for each in lived if each not in listed)
        print(f"{folder}: {count - alive} of {count} killed or listed")
    timeouts = sum(each["outcome"] == "timeout" for each in results)
    killed, possible = len(results) - len(lived), len(results) - len(listed)
    share = killed / possible if possible else 1.0
    print(f"killed {killed} of {len(results)} ({timeouts} by time), {len(listed)} survivors are listed")
    print(f"{share:.1%} of those that are not listed are killed")
    return share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", nargs="+", default=["*"], help="files, as broker/registry/*: the others make no mutants"
    )
    parser.add_argument("--sample", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--resume", type=Path, help="results of a run that was stopped; new ones are appended")
    parser.add_argument("--at-least", type=float, default=0.92, help="the share to be killed, else the exit code is 1")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no mutant after so many")
    wanted = parser.parse_args()
    by_file = {file: tests for file, tests in targets().items() if any(fnmatch(file, each) for each in wanted.only)}
    everything = [mutant for file in sorted(by_file) for mutant in mutants_of(file)]
    sample = sample_of(everything, wanted.seed, wanted.sample)
    path: Path = wanted.resume or ROOT / "build" / f"mutants-{wanted.seed}.jsonl"
    path.parent.mkdir(exist_ok=True)
    kept = path.read_text().splitlines() if wanted.resume and path.exists() else []
    names = {mutant.name for mutant in sample}
    done = {each["name"]: each for each in map(json.loads, kept) if each["name"] in names}
    missing = [mutant for mutant in sample if mutant.name not in done]
    print(f"{len(sample)} of {len(everything)} mutants in {len(by_file)} files; {len(done)} are done", flush=True)

    began = time.monotonic()
    workers: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    if missing:
        made = [Worker(number) for number in range(wanted.workers)]
        seconds = baseline(made[0], (by_file[mutant.file] for mutant in missing), wanted.seed)
        for worker in made:
            workers.put(worker)

    def test(mutant: Mutant) -> dict[str, Any] | None:
        if time.monotonic() - began > 60 * wanted.minutes:
            return None
        worker = workers.get()
        try:
            tests = by_file[mutant.file]
            timeout_s = START_SECONDS + TIMES_AS_LONG * sum(seconds[each] for each in set(tests))
            return worker.test(mutant, tests, wanted.seed, timeout_s)
        finally:
            workers.put(worker)

    with path.open("a" if kept else "w") as file, ThreadPoolExecutor(wanted.workers) as pool:
        for result in pool.map(test, missing):
            if result is None:
                continue
            done[result["name"]] = result
            file.write(json.dumps(result) + "\n")
            file.flush()
            mark = "survived" if result["outcome"] == "passed" else "killed"
            print(f"{len(done)} {mark} {result['file']}:{result['line']} ({result['seconds']} s)", flush=True)
    share = report(list(done.values()), known_survivors())
    if len(done) < len(sample):
        raise SystemExit(f"{len(sample) - len(done)} of the sample are left: go on with --resume {path}")
    raise SystemExit(share < wanted.at_least)


if __name__ == "__main__":
    main()
