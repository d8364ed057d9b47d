"""What a test may cost: its share of the gate, and what only the long forms run.

`slow` marks what `make test` leaves to `make test-slow`. Hypothesis tries few examples of a property in the gate, many
in `make test-deep`: MOMUS_HYPOTHESIS names the profile, fast or deep. (`make mutants` names its own: fast, and without
shrinking.) A property that says nothing gets 25 examples; one that needs another number takes `budget`, which grows
with the profile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

FAST_EXAMPLES = 25
DEEP_FACTOR = 40
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


def short_and_slow(values: Iterable[Any], short: int) -> list[Any]:
    """The first values for the gate, the others for `make test-slow`."""
    return [value if at < short else slow(value) for at, value in enumerate(values)]
