"""Programs of the binary ask for an older glibc where each function that they take is in the older one too."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("elftools", reason="make binary brings pyelftools")
sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

from binary_glibc import ask_for_older, glibc_of

HYPOT = "double hypot(double, double); double {name}(double a, double b) {{ return hypot(a, b); }}"
# in glibc since 2.35, and in no older one
NEWER = "double fmaximum(double, double); double largest(double a, double b) { return fmaximum(a, b); }"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="links a library of Linux"),
]


def linked(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.so"
    words = ["cc", "-shared", "-fPIC", "-fno-builtin", "-x", "c", "-o", path, "-", "-lm"]
    subprocess.run(words, input=text, text=True, check=True, capture_output=True)
    return path


def test_library_with_hypot_runs_with_an_older_glibc_and_computes_the_same(tmp_path: Path):
    path = linked(
        tmp_path, "length", HYPOT.format(name="length") + "double cos(double); double c(void) { return cos(0); }"
    )
    before = glibc_of(tmp_path, compilers=False)
    if before < (2, 35):
        pytest.skip(f"this compiler takes the hypot of glibc {before[0]}.{before[1]} already")
    ask_for_older(path)
    assert glibc_of(tmp_path, compilers=False) < (2, 35)
    length = ctypes.CDLL(str(path)).length
    length.argtypes, length.restype = [ctypes.c_double, ctypes.c_double], ctypes.c_double
    assert (length(3, 4), length(1e200, 1e200), length(float("inf"), 1)) == (5, 1.4142135623730951e200, float("inf"))


def test_library_with_a_function_that_no_older_glibc_has_stays_as_it_is(tmp_path: Path):
    path = linked(
        tmp_path, "both", HYPOT.format(name="length") + "double cos(double); double c(void) { return cos(0); }" + NEWER
    )
    before = path.read_bytes()
    ask_for_older(path)
    assert path.read_bytes() == before
