"""Whatever switches a check off says why: in the source, in pyproject.toml and in the whitelist of dead code."""

from __future__ import annotations

import re
import tomllib

from source_tree import REPOSITORY, every_file, text_of

SUPPRESSION = re.compile(
    r"#\s*(?:noqa\b(?::\s*[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*)?"
    r"|type:\s*ignore\b(?:\[[\w, -]*\])?"
    r"|fmt:\s*(?:off|skip)\b"
    r"|pragma\b:?[ \w]*"
    r"|(?:ruff|pyright|isort|pylint)\s*:[ \w-]*)(?P<reason>.*)"
)
REASON = re.compile(r"\s*(#|-|--|—)\s*\w.*\w")
REASON_BESIDE = re.compile(r"#\s*\w+.*\w")


def suppressions_without_reason(text: str) -> list[int]:
    """Numbers of the lines that hold a suppression and no reason for it: none behind it, and none above it where it
    is a line of its own, as "fmt: off" must be."""
    lines = text.splitlines()
    return [
        number
        for number, line in enumerate(lines, 1)
        for found in SUPPRESSION.finditer(line)
        if not REASON.match(found["reason"])
        and not (line.lstrip() == found[0] and number > 1 and REASON.match(lines[number - 2]))
    ]


def test_suppressions_in_the_source_say_why():
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{line}"
        for path in every_file()
        if path.name != "test_suppressions.py"  # its strings are suppressions
        for line in suppressions_without_reason(text_of(path))
    ]
    assert not wrong


def test_suppression_is_told_from_one_with_a_reason():
    bare = ("x = 1  # noqa: E501", "y = 2  # type: ignore[misc]", ")  # fmt: skip", "# fmt: off", "z  # noqa")
    for line in bare:
        assert suppressions_without_reason(line) == [1]
        assert suppressions_without_reason(f"{line}  # the library has no types") == []
    assert suppressions_without_reason("# A row is a line.\n" + bare[3]) == []
    assert suppressions_without_reason("# A row is a line.\nx" + bare[2]) == [2]


def _entries(text: str, table: str, key: str = "") -> list[str]:
    """Lines of a table in pyproject.toml, or of one of its lists, without their comments' lines."""
    body = re.search(rf"^\[{re.escape(table)}\]\n(.*?)(?=^\[|\Z)", text, re.DOTALL | re.MULTILINE)
    assert body, f"pyproject.toml has no {table}"
    held = body[1]
    if key:
        listed = re.search(rf"^{key} = \[\n(.*?)^\]", held, re.DOTALL | re.MULTILINE)
        assert listed, f"{table} has no {key}"
        held = listed[1]
    return held.splitlines()


def _without_reason(lines: list[str]) -> list[str]:
    """Entries with neither a comment beside them nor one on the line above."""
    wrong = []
    above = ""
    for line in lines:
        entry, _, _ = line.partition("#")
        if entry.strip() and not REASON_BESIDE.search(line) and not above.strip().startswith("#"):
            wrong.append(line.strip())
        above = line
    return wrong


def test_exceptions_in_pyproject_say_why():
    text = (REPOSITORY / "pyproject.toml").read_text()
    wrong = _without_reason(_entries(text, "tool.ruff.lint", "ignore"))
    wrong += _without_reason(_entries(text, "tool.ruff.lint.per-file-ignores"))
    wrong += _without_reason(_entries(text, "tool.pytest.ini_options", "filterwarnings"))
    for part in text.split("[[tool.mypy.overrides]]")[1:]:
        settings = part.partition("\n[")[0].rpartition("]\n")[2]  # what follows the list of modules
        wrong += _without_reason([line for line in settings.splitlines() if " = " in line])
    assert not wrong
    assert len(tomllib.loads(text)["tool"]["mypy"]["overrides"]) == text.count("[[tool.mypy.overrides]]")
