"""Many small cases in one test, for what takes less time than a test of its own costs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each_case(names: str, values: Iterable[Any], ids: Iterable[str] | None = None) -> Callable[[Any], Any]:
    """As pytest.mark.parametrize, but all in one test: every case runs, and the failure names all that failed.

    Fixtures are shared by the cases: only for tests whose fixtures do not change.
    """
    several = "," in names
    arguments = [name.strip() for name in names.split(",")]
    rows = [tuple(value) if several else (value,) for value in values]
    labels = list(ids) if ids is not None else ["-".join(map(_label, row)) for row in rows]
    assert len(labels) == len(rows) > 0

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test, updated=())
        def run(*given: Any, **fixtures: Any) -> None:
            failed: dict[str, Exception | AssertionError] = {}
            for label, row in zip(labels, rows, strict=True):
                try:
                    test(*given, **fixtures, **dict(zip(arguments, row, strict=True)))
                except Exception as error:
                    failed[label] = error
            if failed:
                first = next(iter(failed.values()))
                first.add_note(f"{len(failed)} of {len(rows)} cases failed: {', '.join(failed)}")
                raise first

        run.pytestmark = getattr(test, "pytestmark", [])
        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in arguments]
        run.__signature__ = signature.replace(parameters=left)  # what pytest looks up as fixtures
        return run

    return decorate


def _label(value: Any) -> str:
    return getattr(value, "__name__", None) or str(value)[:60]
