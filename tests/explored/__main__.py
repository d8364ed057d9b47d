"""`make explore-proof`: explores services with a bug each, which must be found, and right ones, where nothing must be.

    ARGS="--only PATTERN --planted --right --budget 60s"

Each of the first must fail within the budget (60 s, all processors), each of the second must not. What a right service
must put up with from its client, a fault that Apache Kafka shows too, stands at its place in services/. The exit code
is 1 where one is not so. It takes three minutes for the first and as long as there are schedules for the second.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

SERVICES = Path(__file__).resolve().parent / "services"
JAVA = Path(__file__).resolve().parent / "java"
SHARE = "ShareBilling.java"
sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from kafka_jars import fetch_jars  # noqa: E402 - found by the line above

RIGHT = "right.py"


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def tests() -> list[str]:
    """The tests of all services, as pytest names them."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--no-header", "-p", "no:warnings"]
    found = subprocess.run(words, cwd=SERVICES, capture_output=True, text=True, check=True)
    return [line for line in found.stdout.splitlines() if "::" in line]


def explore(test: str, budget: str, *words: str) -> tuple[dict[str, Any], float]:
    """Explore a test. Returns what was found, as --momus-explore-report writes it, and the seconds."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "found.json"
        began_s = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", test, "--momus-explore", budget, *words]
        ran = subprocess.run(
            [*command, "--momus-explore-report", str(report)], cwd=SERVICES, capture_output=True, text=True, check=False
        )
        if not report.exists():
            raise RuntimeError(f"{test} was not explored:\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}")
        (found,) = json.loads(report.read_text())
        return found, time.monotonic() - began_s


def explore_share_billing(kind: str, budget: str) -> tuple[dict[str, Any], float]:
    """As `explore`, for the service in Java: "planted" or "right". Needs javac, and mvn for Apache Kafka's jars."""
    jars = f"{fetch_jars('current')}/*"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["javac", "-cp", jars, "-d", name, str(JAVA / "ShareBilling.java")], check=True)
        orders = [{"value": f"order {number}"} for number in range(3)]
        load = {"topics": [{"name": "orders", "partitions": 1, "records": orders}]}
        (folder / "load.json").write_text(json.dumps(load))
        check = "test $(sort -u billed/$(echo {servers} | sed 's/.*://') | wc -l) = 3"
        (folder / "billed").mkdir()
        program = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{name}:{jars}", "ShareBilling"]
        began_s = time.monotonic()
        command = [sys.executable, "-m", "momus", "explore", "--load", "load.json", "--check", check, "--restart"]
        command += ["--what", "program,connection,errors", "--budget", budget, "--report", "found.json"]
        command += ["--", *program, "{servers}", "billed", kind]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if not (folder / "found.json").exists():
            raise RuntimeError(f"ShareBilling was not explored:\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}")
        (found,) = json.loads((folder / "found.json").read_text())
        return found, time.monotonic() - began_s


def wrong(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs that the test fails for."""
    return [run for run in found["runs"] if run["verdict"] in ("failed", "hung", "left wrong")]


def main() -> int:
    """Explore those that are asked for. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*")
    parser.add_argument("--planted", action="store_true", help="services with a bug alone")
    parser.add_argument("--right", action="store_true", help="right services alone")
    parser.add_argument("--budget", default="60s")
    asked = parser.parse_args()
    failures = 0
    names = tests()
    if shutil.which("javac") and shutil.which("mvn"):
        names += [f"{SHARE}::planted", f"{SHARE}::right"]
    else:
        say(f"NOT RUN: {SHARE}, because javac or mvn is not installed here")
    for test in names:
        is_right = test.startswith(RIGHT) or test.endswith("::right")
        if not fnmatch(test, f"*{asked.only}*") or (asked.planted and is_right) or (asked.right and not is_right):
            continue
        if test.startswith(SHARE):  # a JVM for each run: "all" would take an hour
            found, seconds = explore_share_billing(test.partition("::")[2], asked.budget)
        else:
            budget = "all" if is_right and asked.budget == "60s" else asked.budget
            found, seconds = explore(test, budget, *([] if is_right else ["-x"]))
        runs = wrong(found)
        if found["note"]:
            failures += 1
            say(f"WRONG {test}: not explored: {found['note']}")
        elif is_right:
            failures += bool(runs)
            told = f"{len(found['runs'])} runs, {len(runs)} went wrong"
            say(f"{'WRONG' if runs else 'right'} {test}: {told}, {seconds:.1f} s")
            for run in runs:
                say(f"    {run['verdict']}: {run['schedule']}")
        else:
            failures += not runs
            told = f"after {len(found['runs'])} runs: {runs[0]['schedule']}" if runs else "not found"
            say(f"{'found' if runs else 'WRONG'} {test}: {told}, {seconds:.1f} s")
    say(f"{failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
