"""docs/clients.md, made from docs/clients.json and from the notes: the tables, and what hangs, loses or doubles."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median
from typing import Any

from client_table.cells import APIS, CLIENTS, ERRORS, FAULTS, NONE, ROWS, Cell, exists
from client_table.notes import BEGINNING, COLD, FENCED, KNOWN, NOTES, SETTINGS, WHAT
from protocol.errors import ErrorCode

KERROR = re.compile(r"^KError (-?\d+)$")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"
HEADS = {
    "Metadata": "Metadata, as a producer begins",
    "FindCoordinator": "FindCoordinator, as a member of a group begins",
    "Produce": "Produce, of a producer at work",
    "Fetch": "Fetch, of a member that waits for records",
    "OffsetCommit": "OffsetCommit, of a member at work",
    "Heartbeat": "Heartbeat, of a member that waits for records",
}
OF_STORIES = {"commit": ("OffsetCommit", "NOT_COORDINATOR")}  # the cell that a story of known.py is about
WORST = ("hangs", "unwell", "lost", "skipped", "twice")  # what a cell is listed for, the worst first


def faults_of(runs: list[dict[str, Any]]) -> list[str]:
    """Which of WORST any run was, the worst first."""
    return [each for each in WORST if any(run["did"] == each or run.get(each) for run in runs)]


def is_survived(runs: list[dict[str, Any]]) -> bool:
    """Whether the client was well again within the limit in each run, and nothing was lost or doubled."""
    return bool(runs) and all(run["did"] == "well" for run in runs) and not faults_of(runs)


def survived(content: dict[str, Any]) -> dict[str, list[str]]:
    """API -> the rows that all clients survive, in the cells and in the stories of known.py."""
    cells, known = content["cells"], content.get("known", {})
    bad = {
        place
        for name, place in OF_STORIES.items()
        if any(run["error"] for run in known.get(name, {"runs": []})["runs"])
    }

    def is_good(api: str, row: str) -> bool:
        return (api, row) not in bad and all(is_survived(cells.get(Cell(each, api, row).key, [])) for each in CLIENTS)

    return {api: [row for row in ROWS if exists(api, row) and is_good(api, row)] for api in APIS}


def _kafka_name(found: re.Match[str]) -> str:
    """Kafka's name of a code, which sarama tells by its number alone."""
    number = int(found[1])
    return ErrorCode(number).name if number in ErrorCode.__members__.values() else found[0]


def _did(run: dict[str, Any]) -> str:
    """What happened in a run, without its seconds."""
    words = [f"`{KERROR.sub(_kafka_name, name)}`" for name in run.get("errors", ())]
    match run["did"]:
        case "hangs":
            words.insert(0, f"**hangs** in {run['hung']}")
        case "unwell":
            words.insert(0, "**not well**")
        case "unmet":
            words.insert(0, run["did"])
    words += [f"**{word}**" for word in ("lost", "skipped", "twice") if run.get(word)]
    words += ["late" if run.get("late") else ""]
    words += ["written" if run.get("written") else "", "read again" if run.get("again") else ""]
    return ", ".join(filter(None, words))


def _seconds(runs: list[dict[str, Any]]) -> str:
    found = median(run["s"] for run in runs)
    return f"{found:.0f}" if found >= 10 else f"{found:.1f}"


def text(runs: list[dict[str, Any]]) -> str:
    """A cell: seconds to well (the median) and what else happened; runs that differ one after the other."""
    kinds: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for run in runs:
        kinds.setdefault((_did(run), run["did"] == "well"), []).append(run)
    parts = []
    for (did, is_well), same in sorted(kinds.items(), key=lambda item: -len(item[1])):
        words = ", ".join(filter(None, (_seconds(same) if is_well else "", did)))
        parts.append(words if len(kinds) == 1 else f"{len(same)}×: {words}")
    return "; ".join(parts) or "?"


def _table(api: str, cells: dict[str, Any]) -> list[str]:
    lines = [f"| | {' | '.join(CLIENTS)} |", "|---|" + "---|" * len(CLIENTS)]
    for row in (each for each in ROWS if exists(api, each)):
        name = f"`{row}`" if row in ERRORS else row
        found = [text(cells.get(Cell(client, api, row).key, [])) for client in CLIENTS]
        lines.append(f"| {name} | {' | '.join(found)} |")
    return lines


def _stories(runs: list[dict[str, Any]]) -> str:
    errors = [run["error"] for run in runs if run["error"]]
    ended = f" ({len(errors)} of {len(runs)} ended with {', '.join(dict.fromkeys(errors))})" if errors else ""
    return f"{', '.join(str(run['s']) for run in runs)} s{ended}"


def _proof(runs: list[dict[str, Any]]) -> list[str]:
    found = next((run["proof"] for run in runs if run.get("proof")), None)
    return ["", "```text", *found, "```"] if found else []


def _named(client: str, said: str, content: dict[str, Any]) -> list[str]:
    """What of one client hangs, loses or doubles, with its proofs."""
    cells, cold = content["cells"], content.get("cold", {}).get(client)
    bad = {
        (api, row): runs
        for api in APIS
        for row in ROWS
        if row != NONE and faults_of(runs := cells.get(Cell(client, api, row).key, []))
    }
    lines = [f"### {said}", ""]
    if cold:
        text_of = f"{cold['count']} of its runs hung before any fault was set, and were made again."
        lines += [" ".join(filter(None, (text_of, COLD.get(client, "")))), *_proof([cold]), ""]
    if not bad:
        return [*lines, "Nothing.", ""]
    told = [note for note in NOTES.get(client, ()) if any(place in bad for place in note.places)]
    for note in told:
        lines += [note.text, ""]
    shown: set[str] = set()
    for (api, row), runs in sorted(bad.items(), key=lambda item: WORST.index(faults_of(item[1])[0])):
        lines.append(f"* {api}, {row}: {text(runs)}")
        kind = f"{api} {faults_of(runs)[0]}"
        if kind not in shown:  # one extract for each API and kind
            shown.add(kind)
            lines += [f"  {line}".rstrip() for line in _proof(runs)]
    return [*lines, ""]


def page(content: dict[str, Any]) -> str:
    """The whole page."""
    cells = content["cells"]
    count = sum(map(len, cells.values()))
    lines = [*BEGINNING.format(runs=f"{count:,}", minutes=round(content["minutes"])).splitlines(), ""]
    lines += ["| client | version |", "|---|---|"]
    lines += [f"| {client} | {content['clients'].get(client, '')} |" for client in CLIENTS]
    lines += ["", *SETTINGS.splitlines(), ""]
    lines += ["| row | what is set, for one request |", "|---|---|"]
    lines += [f"| {row} | {WHAT[row]} |" for row in (NONE, "an error code", *FAULTS)]
    lines += ["", "## What all seven survive", "", "Well again within 45 s, nothing lost, nothing doubled:", ""]
    for api, rows in survived(content).items():
        names = [f"`{row}`" if row in ERRORS else row for row in rows if row != NONE]
        lines.append(f"* {api}: {', '.join(names)}")
    for api in APIS:
        lines += ["", f"## {HEADS[api]}", "", *_table(api, cells)]
    lines += ["", "## What hangs, loses or doubles", ""]
    for client in CLIENTS:
        lines += _named(client, content["clients"].get(client, client), content)
    lines += ["## What the cells do not show", ""]
    for name, told in content.get("known", {}).items():
        lines += [*KNOWN[name].format(client=told["client"], runs=_stories(told["runs"])).splitlines(), ""]
        lines += ["```text", *told["proof"], "```", ""]
    lines += FENCED.splitlines()
    return "\n".join(lines).rstrip() + "\n"
