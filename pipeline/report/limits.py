"""What the page cannot know: the sentences beside the verdict, each made of figures and absent where they are zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from pipeline.audit.commits import BY_KAFKA, SILENT
from pipeline.audit.verdict import count
from pipeline.report.figures import OPEN, Figures

MOST_NAMED: Final = 5


def limits(figures: Figures) -> list[str]:
    """The sentences; none: nothing that is checked is left open."""
    return [*_of_records(figures), *_of_transactions(figures), *_of_groups(figures), *_of_this_page(figures)]


def nothing_open(figures: Figures) -> str:
    """What is said instead, where there are no limits."""
    if not figures.logs:
        return "There is no log here that could say anything."
    commits = f", each of {count(figures.commits_total, 'commit')} names its member" if figures.commits_total else ""
    return f"{count(figures.logs, 'log').capitalize()} complete{commits}, and the broker was stopped in good order."


def _of_records(figures: Figures) -> Iterable[str]:
    rows = figures.incomplete_logs
    inside = [row for row in rows if row["missing_inside"]]
    if inside:
        lost = sum(row["missing_inside"] for row in inside)
        yield (
            f"What {count(lost, 'missing record')} of {count(len(inside), 'log')} said: faults in them leave no trace."
        )
    if headless := [row for row in rows if row["start_offset"]]:
        begin = "begins" if len(headless) == 1 else "begin"
        yield f"What came before the first record of {count(len(headless), 'log')} that no longer {begin} at 0."
    if twice := [row for row in rows if row.get("renewed")]:
        names = _names(row["log"] for row in twice)
        yield f"Anything about {count(len(twice), 'log')} with two topics under one name: {names}."
    if undecided := sum(row["undecided"] for row in figures.undecided):
        yield f"Whether {count(undecided, 'case')} {_is(undecided)} a fault: the table of undecided cases says why."
    if not figures.was_clean:
        yield (
            "Whether the latest DeleteRecords is obeyed: the broker runs or was not stopped in good order, and may not "
            "have written where its logs start."
        )


def _of_transactions(figures: Figures) -> Iterable[str]:
    if old := figures.old_transactions:
        yield (
            f"Whether a late record slipped into one of {count(old, 'committed transaction')} of version 1 (before "
            "KIP-890): their epoch is that of the one before."
        )
    if still := figures.outcomes.get(OPEN, 0):
        yield f"How {count(still, 'transaction')} will end that {_is(still)} open where the logs end."


def _of_groups(figures: Figures) -> Iterable[str]:
    if figures.unnamed:
        commits: Counter[str] = Counter()
        for row in figures.unnamed:
            commits[row["group"]] += row["commits"]
        who = _names((group for group, _ in commits.most_common()), figures.unnamed_groups)
        why = " and ".join(sorted({SILENT[row.get("why", BY_KAFKA)] for row in figures.unnamed}))
        yield (
            f"Who made {count(figures.unnamed_commits, 'commit')} of {count(figures.unnamed_groups, 'group')} ({who}): "
            f"they name no member ({why}), so members "
            "that went back or were stale are not found there."
        )
    if share := figures.kinds.get("share", 0):
        yield (
            f"Why records of {count(share, 'share group')} were archived (rejected, or at the limit), and what was "
            "acquired and never answered: neither is written."
        )
    if streams := figures.kinds.get("streams", 0):
        yield f"Whether members of {count(streams, 'streams group')} committed for another's tasks."
    if figures.without_lag:
        yield f"The lag of {count(figures.without_lag, 'group')}: no log of what they read is here."


def _of_this_page(figures: Figures) -> Iterable[str]:
    shown = len(figures.groups)
    everyone = sum(figures.kinds.values())
    if everyone > shown:
        rest = everyone - shown
        yield f"What {rest:,} of {everyone:,} groups did: each table has those with the most of what it shows."


def _names(names: Iterable[str], total: int | None = None) -> str:
    """The first names, and how many more there are; total: their number where `names` lacks some."""
    every = list(dict.fromkeys(names))
    rest = (len(every) if total is None else total) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")


def _is(number: int) -> str:
    return "is" if number == 1 else "are"
