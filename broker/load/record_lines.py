"""Files with a record in each line, in the forms that people have them: JSON, values alone, KEY:VALUE, CSV."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any, Final

from broker.load.problems import LoadError, Problem
from broker.load.texts import LONGEST_LINE, Text, read_lines

if TYPE_CHECKING:
    from broker.load.problems import Path

RECORDS, VALUES, LINES, KEYED, CSV = FORMATS = ("records", "values", "lines", "keyed", "csv")
OF_ENDINGS: Final = {".csv": CSV, ".txt": LINES}  # of others: records
SEPARATOR: Final = ":"
COLUMNS: Final = ("key", "value", "partition", "timestamp")  # of a CSV that says records, and not what values are
_OF_KCAT: Final = ("payload", "tstype", "broker", "ts")


def format_of(name: str, given: str | None) -> str:
    """What is asked for, or what the ending of the file's name says."""
    return given or OF_ENDINGS.get(name[name.rfind(".") :], RECORDS)


def read_records(name: str, text: str, form: str, separator: str | None, key: str | None) -> Text:
    """Records as the fields of a line of `momus consume --json`. Errors: LoadError: with a problem for each line.

    separator   of KEYED: what is between key and value
    key         of CSV the column, and of VALUES the field, that is the record's key
    """
    if form in (RECORDS, VALUES):
        read = read_lines(name, text)
        read.value = [
            _plain(read, at, each, key) if form == VALUES else _of_kcat(each) for at, each in enumerate(read.value)
        ]
        return read
    if form == CSV:
        return _of_csv(name, text, key)
    rows: list[dict[str, object]] = []
    lines: dict[Path, int] = {}
    problems = []
    between = separator or SEPARATOR
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = line.removesuffix("\r")
        if not line:
            continue
        lines[(len(rows),)] = number
        before, found, after = line.partition(between)
        if len(line) > LONGEST_LINE:
            problems.append(Problem(name, number, "", f"a line is longer than {LONGEST_LINE >> 20} MB"))
        elif form == LINES:
            rows.append({"value": line})
        elif found:
            rows.append({"key": before, "value": after})
        else:
            problems.append(Problem(name, number, "", f"there is no {between!r} between key and value"))
    if problems:
        raise LoadError(problems)
    return Text(name, rows, lambda: lines)


def _plain(read: Text, at: int, value: Any, key: str | None) -> dict[str, object]:
    """A record whose value is this. Errors: LoadError: it has no such field."""
    if key is None:
        return {"value": value}
    if not isinstance(value, dict) or key not in value:
        raise LoadError([read.problem((at,), f"there is no field {key!r}, which is to be the key")])
    return {"key": _text(value[key]), "value": value}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _of_kcat(row: Any) -> Any:
    """A line of `kcat -J` in our fields: payload, ts, headers in one flat list; another one as it is."""
    if not isinstance(row, dict) or not ("payload" in row or "tstype" in row):
        return row
    found = {name: value for name, value in row.items() if name not in _OF_KCAT}
    found["value"] = row.get("payload")
    if row.get("ts") is not None:
        found["timestamp"] = row["ts"]
    headers = row.get("headers")
    if (
        isinstance(headers, list)
        and headers
        and len(headers) % 2 == 0
        and all(isinstance(each, str) for each in headers)
    ):
        found["headers"] = [list(pair) for pair in zip(headers[::2], headers[1::2], strict=True)]
    return found


def _of_csv(name: str, text: str, key: str | None) -> Text:
    """Rows under a header. Columns are fields of a record where one is `value`; else a row is the value, as an object.

    Errors: LoadError.
    """
    reader = csv.reader(text.removeprefix("\ufeff").splitlines(keepends=True), strict=True)
    rows: list[dict[str, object]] = []
    lines: dict[Path, int] = {}
    problems = []
    columns: list[str] = []
    try:
        for row in reader:
            if not row:
                continue
            if not columns:
                columns = row
                wrong = _wrong_columns(columns, key)
                problems += [Problem(name, reader.line_num, "", each) for each in wrong]
                continue
            lines[(len(rows),)] = reader.line_num
            if len(row) != len(columns):
                why = f"has {len(row)} columns, the header {len(columns)}"
                problems.append(Problem(name, reader.line_num, "", why))
                continue
            rows.append(_of_row(dict(zip(columns, row, strict=True)), key))
    except csv.Error as error:
        problems.append(Problem(name, reader.line_num, "", f"this is not CSV: {error}"))
    except KeyError:
        pass  # the key's column is not there, which is said
    if problems:
        raise LoadError(problems)
    return Text(name, rows, lambda: lines)


def _wrong_columns(columns: list[str], key: str | None) -> list[str]:
    twice = sorted({each for each in columns if columns.count(each) > 1})
    found = [f"column {each!r} is there twice" for each in twice]
    if "value" in columns:
        absent = [each for each in columns if each not in (*COLUMNS, key)]
        found += [f"column {each!r} is no field of a record: {', '.join(COLUMNS)} are" for each in absent]
    if key is not None and key not in columns:
        found.append(f"there is no column {key!r}, which is to be the key")
    return found


def _of_row(row: dict[str, str], key: str | None) -> dict[str, object]:
    """A record of a row: an empty partition or time is none, and an empty key is null."""
    if "value" not in row:
        return {"value": row, **({"key": row[key]} if key else {})}
    found: dict[str, object] = {"value": row["value"], "key": row.get(key or "key") or None}
    for name in ("partition", "timestamp"):
        if text := row.get(name):
            found[name] = int(text) if text.isdigit() else text
    return found
