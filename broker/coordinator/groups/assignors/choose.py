"""The assignors of consumer groups by name."""

from __future__ import annotations

from collections.abc import Callable

from broker.coordinator.groups.assignors.range import assign_range
from broker.coordinator.groups.assignors.spec import Spec, Steps
from broker.coordinator.groups.assignors.uniform import assign_uniform


def assignor(name: str) -> Callable[[Spec], Steps]:
    """The assignor called "range" or "uniform"; uniform for any other name, which only an older log can hold."""
    return assign_range if name == "range" else assign_uniform
