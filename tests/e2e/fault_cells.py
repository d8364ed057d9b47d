"""Which faults clients meet in which APIs, at which flush levels: the cells of test_fault_matrix.py, as a table.

python tests/e2e/fault_cells.py     writes the table into docs/faults.md
"""

from __future__ import annotations

from pathlib import Path

FLUSHES = ("memory", "os", "fsync")
# Family -> the API that the fault is set on.
FAMILIES = {
    "produce": "Produce",
    "fetch": "Fetch",
    "commit": "OffsetCommit",
    "committed": "OffsetFetch",
    "join": "JoinGroup",
    "transaction": "EndTxn",
    "metadata": "Metadata",
    "create topic": "CreateTopics",
}
WRITES = ("produce", "commit", "join", "transaction", "create topic")
REQUEST_FAULTS = (
    "inject_error",
    "delay_on before",
    "delay_on after",
    "hold before",
    "hold after",
    "disconnect_on before",
    "disconnect_on after",
    "disconnect_on middle",
    "blackhole_client",
    "throttle",
    "corrupt_reply",
    "deliver_twice",
)
DISK_FAULTS = ("slow_disk", "full_disk", "fail_write", "fail_fsync")
PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
BEGIN, END = "<!-- made by tests/e2e/fault_cells.py -->\n", "<!-- end -->\n"


def levels(fault: str, family: str) -> tuple[str, ...]:
    """The flush levels at which a client meets the fault; none: there is nothing to meet."""
    if fault in REQUEST_FAULTS:
        return FLUSHES
    if family not in WRITES:
        return ()
    return ("fsync",) if fault == "fail_fsync" else FLUSHES


def cells() -> list[tuple[str, str, str]]:
    """Fault, family, flush level."""
    return [
        (fault, family, flush)
        for fault in (*REQUEST_FAULTS, *DISK_FAULTS)
        for family in FAMILIES
        for flush in levels(fault, family)
    ]


def table() -> str:
    """The cells as Markdown; empty ones are printed."""
    lines = [f"| | {' | '.join(FAMILIES.values())} |", f"|---|{'---|' * len(FAMILIES)}"]
    for fault in (*REQUEST_FAULTS, *DISK_FAULTS):
        found = [levels(fault, family) for family in FAMILIES]
        words = ["all" if each == FLUSHES else ", ".join(each) or "-" for each in found]
        kind, _, when = fault.partition(" ")
        lines.append(f"| `{kind}`{when and ' ' + when} | {' | '.join(words)} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with the table of now."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
