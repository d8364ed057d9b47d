"""The words that transforms are written with: Spark's functions and windows, or those of the local engine.

Transforms are functions from DataFrames to a DataFrame and name no engine. `F` and `Window` are those of pyspark.sql
unless the code runs within `local_engine()`; then they make columns for DuckDB (pipeline/local), and the DataFrames are
those of its session. So each transform is written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

_is_local: Final = ContextVar("_is_local", default=False)
_SPARK: Final = {"functions": "pyspark.sql.functions", "Window": "pyspark.sql"}
_LOCAL: Final = {"functions": "pipeline.local.functions", "Window": "pipeline.local.columns"}


@contextmanager
def local_engine() -> Iterator[None]:
    """Within it, columns are made for the local engine."""
    before = _is_local.set(True)
    try:
        yield
    finally:
        _is_local.reset(before)


def is_local() -> bool:
    """Whether columns are made for the local engine."""
    return _is_local.get()


class _Functions:
    def __getattr__(self, name: str) -> Any:
        return getattr(import_module((_LOCAL if _is_local.get() else _SPARK)["functions"]), name)


class _Windows:
    def __getattr__(self, name: str) -> Any:
        where = import_module((_LOCAL if _is_local.get() else _SPARK)["Window"])
        return getattr(where.Window, name)


if TYPE_CHECKING:
    from pyspark.sql import Window
    from pyspark.sql import functions as F
else:
    F, Window = _Functions(), _Windows()

__all__ = ["F", "Window", "is_local", "local_engine"]
