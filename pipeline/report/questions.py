"""The two questions that a person on call has, answered at the top of the page: who reset what, and what came twice."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from pipeline.audit.findings import (
    COMMIT_OUTSIDE_TRANSACTION,
    DUPLICATE_SEQUENCE,
    HANGING_TRANSACTION,
    MARKER_AGAINST_DECISION,
    OFFSET_REGRESSION,
    OVERLAPPING_BATCHES,
    SHARE_DELIVERED_AGAIN,
    STALE_GENERATION,
    STALE_MEMBER_EPOCH,
    STALE_PRODUCER_EPOCH,
    TWO_OWNERS,
)
from pipeline.audit.verdict import BAD, GOOD, UNSURE, Verdict, count
from pipeline.report.digits import moment
from pipeline.report.elements import Cell, folded, section, table

if TYPE_CHECKING:
    from pipeline.report.figures import Figures

# Findings by which records were written, read or counted twice.
WRITTEN_TWICE: Final = (
    DUPLICATE_SEQUENCE, OVERLAPPING_BATCHES, STALE_PRODUCER_EPOCH, COMMIT_OUTSIDE_TRANSACTION, MARKER_AGAINST_DECISION,
)  # fmt: skip  # several to a line
READ_TWICE: Final = (SHARE_DELIVERED_AGAIN, OFFSET_REGRESSION, STALE_GENERATION, STALE_MEMBER_EPOCH, TWO_OWNERS)
HEADS: Final = ("time", "group", "partition", "kind", "from", "to", "again", "skipped", "by", "who", "log @ offset")
WHO: Final = ("client_id", "instance_id", "member_id")


def questions(figures: Figures) -> str:
    """The section."""
    parts = "".join(
        f'<div><h3>{title}</h3><p class="verdict {answer.kind}">{escape(answer.text)}</p>{more}</div>'
        for title, answer, more in (
            ("Who reset what?", who_reset(figures), _few(figures)),
            ("Was anything delivered twice?", delivered_twice(figures), _ways(figures)),
        )
    )
    rows: list[tuple[Cell, ...]] = [_row(each) for each in figures.resets]
    shown = len(rows)
    title = f"Every reset, the latest first{'' if shown == figures.resets_total else f' ({shown:,} of them)'}"
    every = folded(title, table("resets", _heads(figures), rows)) if rows else ""
    return section("questions", "On call", "", f'<div class="asked">{parts}</div>{every}')


def _heads(figures: Figures) -> tuple[str, ...]:
    return f"time ({figures.zone})", *HEADS[1:]


def who_reset(figures: Figures) -> Verdict:
    """The answer in a sentence."""
    if not figures.resets_total:
        return Verdict("No one: no commit goes back or jumps, and no offset was removed", GOOD)
    by = {who: n for who, n in figures.resets_by.items() if n}
    makers = ", ".join(f"{n:,} by {'a ' + who if who != 'unknown' else 'unknown clients'}" for who, n in by.items())
    return Verdict(
        f"{count(figures.resets_total, 'reset')} of {count(figures.reset_groups, 'group')}: {makers}", UNSURE
    )


def delivered_twice(figures: Figures) -> Verdict:
    """The answer in a sentence, of transactions and plain groups together."""
    found = sum(figures.findings_by_kind.get(kind, 0) for kind in (*WRITTEN_TWICE, *READ_TWICE))
    if found or figures.read_again:
        parts = [count(found, "finding")] if found else []
        parts += [f"{count(figures.read_again, 'record')} read again after resets"] if figures.read_again else []
        return Verdict(f"Yes: {' and '.join(parts)}", BAD if found else UNSURE)
    if figures.undecided or figures.incomplete_logs:
        return Verdict("Not as far as the logs are there", UNSURE)
    return Verdict("No: nothing was written twice, and no group went back", GOOD)


def _ways(figures: Figures) -> str:
    """The same apart: in transactions, and in groups without them."""
    found = figures.findings_by_kind
    written = sum(found.get(kind, 0) for kind in WRITTEN_TWICE)
    open_ones = found.get(HANGING_TRANSACTION, 0)
    read = sum(found.get(kind, 0) for kind in READ_TWICE)
    transactions = count(sum(figures.outcomes.values()), "transaction")
    said = [
        f"In {transactions} and by idempotent producers: {count(written, 'finding') if written else 'nothing twice'}"
        + (f", {count(open_ones, 'transaction')} that hang" if open_ones else "")
        + ".",
        f"In plain groups: {count(figures.read_again, 'record')} read again in {count(figures.went_back, 'commit')} "
        f"that go back{', ' + count(read, 'finding') if read else ''}. What a member had read and not committed when "
        "it stopped was read again too: no log says how much.",
    ]
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in said)}</ul>"


def _few(figures: Figures) -> str:
    """The latest ones in sentences."""
    rows = "".join(f"<li>{escape(_sentence(each))}</li>" for each in figures.resets[:5])
    return f"<ul>{rows}</ul>" if rows else ""


def _sentence(row: dict[str, object]) -> str:
    place = f"{row['group']} on {row['topic']}-{row['partition']}"
    by = _who(row)
    if row["kind"] == "removed":
        what = f"offset {row['from_offset']} removed"
    else:
        effect = f"{row['again']:,} read again" if row["kind"] == "back" else f"{row['skipped']:,} skipped"
        what = f"from {row['from_offset']:,} to {row['to_offset']:,}, {effect}"
    return f"{moment(int(str(row['at'])))}: {place}, {what}, by {by}"


def _who(row: dict[str, object]) -> str:
    named = next((str(row[name]) for name in WHO if row.get(name)), None)
    return f"{row['by']} {named}" if named else str(row["by"])


def _row(row: dict[str, object]) -> tuple[Cell, ...]:
    named = next((str(row[name]) for name in WHO if row.get(name)), None)
    numbers = [row[name] for name in ("from_offset", "to_offset", "again", "skipped")]
    return (
        moment(int(str(row["at"]))), str(row["group"]), f"{row['topic']}-{row['partition']}", str(row["kind"]),
        *(None if each is None else int(str(each)) for each in numbers),
        str(row["by"]), named, f"{row['log']} @ {row['log_offset']}",
    )  # fmt: skip  # several to a line
