"""What became of another project's tests, run against momus: read from JUnit's XML, and held to a list of reasons."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

LETTERS: Final = 1500  # of why a test failed


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def outcomes(report: Path) -> Iterator[tuple[str, str, str]]:
    """Class and name of each test of a report, and why it failed; "": it passed. One that was skipped is left out."""
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is not None:
            continue
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        why = "" if failure is None else (failure.get("message") or failure.get("type") or "no message")
        yield case.get("classname") or "", case.get("name") or "", why


def reason(explained: Mapping[str, str], name: str) -> str:
    """Why a test fails: what is said of a part of its name; "": nothing."""
    return next((why for part, why in explained.items() if part in name), "")


def reported(
    whose: str, found: Mapping[str, str], explained: Mapping[str, str], theirs: Mapping[str, str], *, is_whole: bool
) -> bool:
    """Print what became of tests. Returns whether each that fails has a reason, or fails in `theirs` too.

    found      test -> why it failed; "": it passed.
    explained  part of a test's name -> reason.
    is_whole   all tests were run, so that a reason without a failure is out of date.
    """
    failed = {name: why for name, why in found.items() if why}
    left = {name: why for name, why in failed.items() if not reason(explained, name) and not theirs.get(name)}
    outcome = f"{len(failed) - len(left)} fail with a reason, {len(left)} without"
    say(f"{len(found)} of {whose} tests: {len(found) - len(failed)} pass, {outcome}")
    for name in failed:
        if name not in left:
            say(f"  {name}: {reason(explained, name) or 'fails there too'}")
    for part in explained if is_whole else ():
        if not any(part in name for name in failed):
            say(f"  passes by now: {part}")
    for name, why in left.items():
        say(f"\n{name}\n  {why[:LETTERS]}")
    return not left
