"""The functions that the transforms use, in Spark's words: each makes a column of DuckDB's SQL.

Where the two differ, Spark's way holds: sums are 64 bits wide, max_by takes a value that is null, lists of nothing are
empty, a format prints null as `null`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from inspect import signature
from typing import Any, Final

from pipeline.local.columns import Aggregate, Cases, Column, column_of, literal, sql_of
from pipeline.local.spark_sql import json_structure, quoted

Name = str | Column
SESSIONS: Final[list[Any]] = []  # of session.py, the last one runs
_VARIABLES: Final = itertools.count()
_DIRECTIVE: Final = re.compile(r"%(?:s|d|\.0f|%)")


def col(name: str) -> Column:
    """A column, or a field of one."""
    return column_of(name)


def lit(value: Any) -> Column:
    """A value."""
    return value if isinstance(value, Column) else Column(literal(value))


def when(test: Column, value: Any) -> Cases:
    """The value where the test holds, else null or what follows."""
    return Cases([(test.sql, sql_of(value))])


def _call(name: str, *values: Name) -> Column:
    return Column(f"{name}({', '.join(column_of(each).sql for each in values)})")


def _aggregate(name: str, *values: Name) -> Aggregate:
    return Aggregate(f"{name}({', '.join(column_of(each).sql for each in values)})")


def coalesce(*values: Name) -> Column:
    """The first that is not null."""
    return _call("coalesce", *values)


def greatest(*values: Name) -> Column:
    """The highest that is not null."""
    return _call("greatest", *values)


def least(*values: Name) -> Column:
    """The lowest that is not null."""
    return _call("least", *values)


def concat(*values: Name) -> Column:
    """Texts or lists after one another; null if one is."""
    return Column("(" + " || ".join(column_of(each).sql for each in values) + ")")


def struct(*values: Name) -> Column:
    """A value of several fields, with the names of the columns."""
    every = [column_of(each) for each in values]
    return Column("{" + ", ".join(f"'{each.name}': {each.sql}" for each in every) + "}")


def array(*values: Name) -> Column:
    """A list."""
    return Column("[" + ", ".join(column_of(each).sql for each in values) + "]")


def pmod(value: Name, by: Name) -> Column:
    """The remainder, which is not below 0."""
    one, two = column_of(value).sql, column_of(by).sql
    return Column(f"((({one}) % ({two}) + ({two})) % ({two}))")


def floor(value: Name) -> Column:
    """The whole number below."""
    return Column(f"CAST(floor({column_of(value).sql}) AS BIGINT)")


def ceil(value: Name) -> Column:
    """The whole number above."""
    return Column(f"CAST(ceil({column_of(value).sql}) AS BIGINT)")


def round(value: Name, digits: int = 0) -> Column:  # noqa: A001  # Spark's name
    """Rounded."""
    return Column(f"round({column_of(value).sql}, {digits})")


def unix_micros(value: Name) -> Column:
    """A time as microseconds since 1970."""
    return _call("epoch_us", value)


def unix_millis(value: Name) -> Column:
    """A time as milliseconds since 1970."""
    return _call("epoch_ms", value)


def timestamp_micros(value: Name) -> Column:
    """The time so many microseconds after 1970."""
    return Column(f"make_timestamp(CAST({column_of(value).sql} AS BIGINT))")


def format_string(form: str, *values: Name) -> Column:
    """A text with values put into it."""
    rest = iter(values)
    parts: list[str] = []
    end = 0
    for found in _DIRECTIVE.finditer(form):
        parts.append(literal(form[end : found.start()]))
        end = found.end()
        if found[0] == "%%":
            parts.append(literal("%"))
            continue
        value = column_of(next(rest)).sql
        value = f"CAST(round({value}) AS BIGINT)" if found[0] == "%.0f" else value
        parts.append(f"coalesce(CAST({value} AS VARCHAR), 'null')")
    parts.append(literal(form[end:]))
    return Column("(" + " || ".join(each for each in parts if each != "''") + ")")


def regexp_extract(value: Name, pattern: str, group: int) -> Column:
    """What a group of a regular expression matches."""
    return Column(f"regexp_extract({column_of(value).sql}, {literal(pattern)}, {group})")


def from_json(value: Name, kind: str) -> Column:
    """A text in JSON as a struct or list."""
    return Column(f"from_json({column_of(value).sql}, {literal(json_structure(kind))})")


def get_json_object(value: Name, path: str) -> Column:
    """A field of a text in JSON, as text."""
    return Column(f"json_extract_string({column_of(value).sql}, {literal(path)})")


def substring(value: Name, first: int, length: int) -> Column:
    """Bytes from the `first`, counted from 1, on."""
    return Column(f"({column_of(value).sql})[{first}:{first + length - 1}]")


# ---------------------------------------------------------------- lists


def explode(value: Name) -> Column:
    """A row for each element of a list."""
    return _call("unnest", value)


def sequence(first: Name, last: Name) -> Column:
    """The list of whole numbers from the first to the last."""
    return _call("generate_series", first, last)


def flatten(value: Name) -> Column:
    """Lists in a list after one another."""
    return _call("flatten", value)


def get(value: Name, at: Name) -> Column:
    """An element of a list, counted from 0; null where there is none."""
    return Column(f"({column_of(value).sql})[({column_of(at).sql}) + 1]")


def array_contains(value: Name, element: Any) -> Column:
    """Whether a list has an element."""
    return Column(f"list_contains({column_of(value).sql}, {sql_of(element)})")


def sort_array(value: Name) -> Column:
    """A list in order."""
    return _call("list_sort", value)


def transform(value: Name, change: Callable[..., Column]) -> Column:
    """A list of changed elements. change: takes the element, or the element and its number from 0 on."""
    one = f"x{next(_VARIABLES)}"
    if len(signature(change).parameters) == 1:
        return Column(f"list_transform({column_of(value).sql}, lambda {one} : {change(Column(one, one)).sql})")
    at = f"i{next(_VARIABLES)}"
    made = change(Column(one, one), Column(f"({at} - 1)", at)).sql
    return Column(f"list_transform({column_of(value).sql}, lambda {one}, {at} : {made})")


def filter(value: Name, test: Callable[[Column], Column]) -> Column:  # noqa: A001  # Spark's name
    """The elements of a list for which a test holds."""
    one = f"x{next(_VARIABLES)}"
    return Column(f"list_filter({column_of(value).sql}, lambda {one} : {test(Column(one, one)).sql})")


# ---------------------------------------------------------------- aggregates and windows


def max(value: Name) -> Column:  # noqa: A001  # Spark's name
    """The highest."""
    return _aggregate("max", value)


def min(value: Name) -> Column:  # noqa: A001  # Spark's name
    """The lowest."""
    return _aggregate("min", value)


def sum(value: Name) -> Column:  # noqa: A001  # Spark's name
    """The sum of whole numbers."""
    return Aggregate(f"sum({column_of(value).sql})", "CAST({} AS BIGINT)")


def count(value: Name) -> Column:
    """How many are not null."""
    return _aggregate("count", value)


def count_if(test: Name) -> Column:
    """For how many a test holds."""
    return Aggregate(f"count_if({column_of(test).sql})", "CAST({} AS BIGINT)")


def countDistinct(value: Name) -> Column:  # noqa: N802  # Spark's name
    """How many different ones there are."""
    return Aggregate(f"count(DISTINCT {column_of(value).sql})")


def bool_or(test: Name) -> Column:
    """Whether a test holds for any."""
    return _aggregate("bool_or", test)


def first(value: Name) -> Column:
    """That of any row."""
    return _aggregate("first", value)


def max_by(value: Name, by: Name) -> Column:
    """The value of the row with the highest `by`."""
    return _aggregate("arg_max_null", value, by)


def min_by(value: Name, by: Name) -> Column:
    """The value of the row with the lowest `by`."""
    return _aggregate("arg_min_null", value, by)


def collect_list(value: Name) -> Column:
    """All that are not null, as a list."""
    sql = column_of(value).sql
    return Column(f"coalesce(list({sql}) FILTER (WHERE {sql} IS NOT NULL), [])")


def collect_set(value: Name) -> Column:
    """All different ones that are not null, as a list."""
    sql = column_of(value).sql
    return Column(f"coalesce(list(DISTINCT {sql}) FILTER (WHERE {sql} IS NOT NULL), [])")


def last(value: Name, ignorenulls: bool = False) -> Column:
    """In a window: the last one, or the last that is not null."""
    return Aggregate(f"last_value({column_of(value).sql}{' IGNORE NULLS' if ignorenulls else ''})")


def lead(value: Name) -> Column:
    """In a window: that of the next row."""
    return _aggregate("lead", value)


def lag(value: Name) -> Column:
    """In a window: that of the row before."""
    return _aggregate("lag", value)


def desc(name: Name) -> Column:
    """For an order: the highest first."""
    return column_of(name).desc()


def asc(name: Name) -> Column:
    """For an order: the lowest first."""
    return column_of(name).asc()


# ---------------------------------------------------------------- what only one engine needs


def broadcast(rows: Any) -> Any:
    """Nothing here: a hint to Spark."""
    return rows


def udf(function: Callable[..., Any], kind: str, useArrow: bool = False) -> Callable[..., Column]:  # noqa: N803  # Spark's name
    """A function in Python over columns, whose result has this type in Spark's words; it must be registered."""
    name = SESSIONS[-1].register(function, kind)
    return lambda *values: _call(quoted(name), *values)
