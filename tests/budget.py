"""What a test may cost: its share of the gate, and what only the long forms run.

`heavy` marks what `make test` leaves to `make test-heavy`, the second part of the gate, and `slow` what the gate leaves
to `make test-slow`. Hypothesis tries few examples of a property in the gate, many in `make test-deep`: MOMUS_HYPOTHESIS
names the profile, fast or deep. (`make mutants` names its own: fast, and without shrinking.) A property that says
nothing gets 25 examples; one that needs another number takes `budget`, which grows with the profile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

FAST_EXAMPLES = 25
DEEP_FACTOR = 40
FEW = 4  # so many cases of a test are not worth two parts
PROFILE = os.environ.get("MOMUS_HYPOTHESIS", "fast")
IS_DEEP = PROFILE == "deep"

# No deadline: the machine may be busy with the other half of the tests.
COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


def load_profile() -> None:
    """Make the profile that MOMUS_HYPOTHESIS names the default of all properties."""
    settings.register_profile("fast", max_examples=FAST_EXAMPLES, **COMMON)
    settings.register_profile("deep", max_examples=FAST_EXAMPLES * DEEP_FACTOR, **COMMON)
    # For mutants nobody reads the example, and shrinking takes up to two minutes.
    unshrunk = {"phases": (Phase.explicit, Phase.generate), "database": None, "report_multiple_bugs": False}
    settings.register_profile("mutants", max_examples=FAST_EXAMPLES, **unshrunk, **COMMON)
    settings.load_profile(PROFILE)


def budget(examples: int, **more: Any) -> settings:
    """Settings of a property that tries so many examples in the gate, DEEP_FACTOR times as many in the deep form."""
    return settings(max_examples=examples * DEEP_FACTOR if IS_DEEP else examples, **more)


def slow(*values: Any, name: str | None = None) -> Any:
    """A case of a parametrised test that only `make test-slow` runs."""
    return pytest.param(*values, marks=pytest.mark.slow, id=name)


def heavy(*values: Any) -> Any:
    """A case of a parametrised test that `make test-heavy` runs, and `make test` does not."""
    return pytest.param(*values, marks=pytest.mark.heavy)


def short_and_slow(values: Iterable[Any], short: int) -> list[Any]:
    """The first `short` values for the gate, the others for `make test-slow`.

    Of many, such as the seeds of random histories, `make test` runs a quarter and `make test-heavy` the rest.
    """
    light = max(short // 4, FEW)
    return [
        value if at < min(light, short) else heavy(value) if at < short else slow(value)
        for at, value in enumerate(values)
    ]
