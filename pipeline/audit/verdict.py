"""What an audit may claim: `held` needs transactions, all of their records, and no finding."""

from __future__ import annotations

from typing import Final, NamedTuple

BAD: Final = "bad"
UNSURE: Final = "unsure"
GOOD: Final = "good"


class Verdict(NamedTuple):
    """A sentence, and BAD, UNSURE or GOOD."""

    text: str
    kind: str


def verdict(
    *, findings: int, undecided: int, transactions: int, logs: int, incomplete: int, unnamed: int, otherwise: int = 0
) -> Verdict:
    """The verdict on counts of findings, undecided cases, transactions, logs, and logs with missing records.

    unnamed: groups whose commits name no member. otherwise: undecided cases that missing records do not explain.
    """
    if findings:
        return Verdict(f"{count(findings, 'finding')}: exactly-once did not hold", BAD)
    if undecided:
        why = "" if otherwise else ", because records are missing"
        return Verdict(f"No finding, but {count(undecided, 'case')} undecided{why}", UNSURE)
    if not transactions:
        return Verdict(f"No transactions in {count(logs, 'log')}: exactly-once was not put to the test", UNSURE)
    if incomplete:
        of = f"{incomplete:,} of {count(logs, 'log')}"
        return Verdict(f"No finding in {count(transactions, 'transaction')}, but records of {of} are missing", UNSURE)
    seen = f"{count(transactions, 'transaction')}, {count(logs, 'log')} complete"
    but = ""
    if unnamed:
        but = f"; the commits of {count(unnamed, 'group')} name no member, so who made them was not checked"
    return Verdict(f"Exactly-once held: no finding in {seen}{but}", GOOD)


def count(number: int, what: str) -> str:
    """`1 finding`, `2 findings`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
