"""What was found, for people and programs: lines for a terminal, Markdown, JUnit XML, JSON, a page (page.py)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from shlex import quote

from momus.explore.findings import Explored, Run, line, what, where
from momus.explore.watch import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_SHOWN = 20  # findings of a test whose own report is shown
MOST_WHY = 30  # lines of it
WIDTH = 46


def failure_text(told: Explored) -> str:
    """What a test shows that fails when it is explored."""
    lines = [f"{len(told.wrong)} of {len(told.runs)} runs went wrong; without a fault the test passes."]
    examples = told.examples
    for run, count in examples[:MOST_SHOWN]:
        lines += ["", f"{run.verdict}: {line(run)}{_again(run)}{_alike(count)}", f"  {told.again_command(run)}"]
        lines += [f"  {run.kept}"] if run.kept else []
        lines += [f"  | {each}" for each in run.why.splitlines()[-MOST_WHY:]]
    if len(examples) > MOST_SHOWN:
        lines += ["", f"and {len(examples) - MOST_SHOWN} other kinds, which the summary lists"]
    return "\n".join(lines)


def opened_at(path: str) -> str:
    """The command that opens the file of a run just before the request at which something happened. Errors: OSError."""
    import zipfile  # 10 ms: few runs are kept

    with zipfile.ZipFile(path) as file, file.open("journal.jsonl") as lines:
        requests = [json.loads(line) for line in lines]
    places = [number for number, each in enumerate(requests) if str(each.get("fault", "")).startswith(PREFIX)]
    until = f" --until {places[0]}" if places else ""
    return f"momus open {quote(path)}{until} --ui"


def _alike(count: int) -> str:
    return f", and {count - 1} more at such requests" if count > 1 else ""


def _again(run: Run) -> str:
    return f" (once more: {run.again})" if run.again and run.again != run.verdict else ""


def summary_lines(explored: Sequence[Explored], *, verbose: bool = False) -> Iterator[str]:
    """The summary for a terminal."""
    notes = Counter(each.note for each in explored if each.note)
    for each in explored:
        if each.note:
            if verbose or each.note.startswith(("differs", "its cluster", "it asks")):
                yield f"{each.test}: not explored: {each.note}"
            continue
        yield each.head
        yield from table(each)
        for run, _ in each.examples:
            yield f"  {run.verdict}{_again(run)}: {each.again_command(run)}"
            if run.kept:
                yield f"    {run.kept}"
    for note, count in notes.items():
        if not verbose and not note.startswith(("differs", "its cluster", "it asks")):
            yield f"{count} {'test' if count == 1 else 'tests'} not explored: {note}"
    if not explored:
        yield "no test was run"


def table(each: Explored) -> Iterator[str]:
    """What happened × where, of the rows in which something was found."""
    cells: dict[str, dict[str, Counter[str]]] = {}
    for run in each.runs:
        cells.setdefault(what(run), {}).setdefault(where(run), Counter())["wrong" if run.is_wrong else "passed"] += 1
    for happened, places in cells.items():
        wrong = {place: count for place, count in places.items() if count["wrong"]}
        if wrong:
            told = ", ".join(f"{place} {count['wrong']} of {count.total()}" for place, count in wrong.items())
            yield f"    {happened:<{WIDTH}} {told}"


def write_report(path: str, explored: Sequence[Explored]) -> None:
    """Write what was found, as the end of the name says: .json, .md, .xml, .html. Errors: OSError."""
    file = Path(path)
    makers = {".json": _as_json, ".md": _as_markdown, ".xml": _as_junit, ".html": _as_page}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(makers.get(file.suffix, _as_json)(explored), encoding="utf-8")


def _as_json(explored: Sequence[Explored]) -> str:
    return json.dumps([each.as_json() for each in explored], indent=1)


def _as_page(explored: Sequence[Explored]) -> str:
    from momus.explore.page import as_page  # 5 ms: few reports are pages

    return as_page(explored)


def _as_markdown(explored: Sequence[Explored]) -> str:
    lines = ["# What momus explored", ""]
    for each in explored:
        if each.note:
            lines += [f"* `{each.test}`: not explored: {each.note}"]
            continue
        lines += ["", f"## {each.test}", "", each.head, ""]
        if each.wrong:
            lines += ["| what happened | where | verdict | once more |", "|---|---|---|---|"]
            lines += [
                f"| {what(run)} | {where(run)} | {run.verdict} | `{each.again_command(run)}` |" for run in each.wrong
            ]
    return "\n".join(lines) + "\n"


def _as_junit(explored: Sequence[Explored]) -> str:
    from xml.etree.ElementTree import Element, SubElement, tostring  # 10 ms: few reports are XML

    suites = Element("testsuites")
    for each in explored:
        suite = SubElement(
            suites, "testsuite", name=each.test, tests=str(len(each.runs)), failures=str(len(each.wrong))
        )
        for run in each.runs:
            case = SubElement(suite, "testcase", classname=each.test, name=line(run), time=f"{run.seconds:.3f}")
            if run.is_wrong:
                SubElement(case, "failure", message=run.verdict).text = run.why
    return str(tostring(suites, encoding="unicode"))
