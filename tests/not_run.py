"""Says at the very end what a run of the tests left out, why, and which target runs it; adds the same lines to the file
that NOT_RUN_FILE names, for .ci/run to repeat."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

# Marker -> what its tests are, and the target that runs them; the first marker that a test has counts.
TARGETS = {
    "java": ("tests with Apache Kafka's own Java clients", "make test-java"),
    "spark": ("tests of the pipeline", "make test-pipeline"),
    "page": ("tests of the page in Chromium", "make test-page"),
    "modules": ("tests of the container image by Testcontainers' modules", "make test-image-modules"),
    "image": ("tests of the container image", "make test-image"),
    "long": ("tests of the pipeline's long form", "make pipeline-long and make test-spark-cluster"),
    "slow": ("slow tests", "make test-slow, or make test-all for everything"),
    "heavy": ("heavy tests, which start processes or take more than a second", "make test-heavy"),
}
# Folders that `make test` does not read, and the targets that run them.
FOLDERS = {
    "tests/e2e": ("most of tests/e2e, with real clients, commands and processes", "make test-heavy"),
    "tests/pipeline": ("the tests of the pipeline", "make test-pipeline"),
}


class NotRun:
    """Counts tests that are deselected by a marker or skipped; xdist's workers hand it to the controller."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.deselected: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        if self.config.option.keyword:
            return  # whoever names tests knows that the others do not run
        for item in items:
            marker = next((each for each in TARGETS if item.get_closest_marker(each)), None)
            if marker is not None:
                self.deselected[marker] += 1

    def pytest_sessionfinish(self) -> None:
        worker = getattr(self.config, "workeroutput", None)
        if worker is not None:
            worker["deselected"] = dict(self.deselected)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        self.deselected |= Counter(getattr(node, "workeroutput", {}).get("deselected", {}))  # each collects all

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1

    def lines(self) -> list[str]:
        """One line for each thing that was not run."""
        found = [
            f"NOT RUN: {self.deselected[marker]} {what}: {target}"
            for marker, (what, target) in TARGETS.items()
            if self.deselected[marker]
        ]
        if self.config.option.light and not self.config.option.keyword:
            found += [f"NOT RUN: {what}: {target}" for what, target in FOLDERS.values()]
        return found + [f"NOT RUN: {count} skipped: {reason}" for reason, count in sorted(self.skipped.items())]

    def pytest_unconfigure(self) -> None:
        if hasattr(self.config, "workeroutput"):
            return
        lines = self.lines()
        for line in lines:
            sys.stdout.write(line + "\n")
        name = os.environ.get("NOT_RUN_FILE")
        if name:
            with Path(name).open("a") as file:
                file.writelines(f"{line}\n" for line in lines)
