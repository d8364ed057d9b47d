"""The benchmark that reads committed offsets from segments runs to its end and prints what it read a second."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_benchmark_prints_figures():
    command = ["-m", "benchmarks.decode", "--only", "decode", "process", "--records", "500", "--batch", "5"]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = re.findall(r"\d[\d,.]*|nan", done.stdout)
    assert figures
    assert "nan" not in figures
