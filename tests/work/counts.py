"""The counts that are kept, one file for each version of Python, and what is said of others."""

from __future__ import annotations

import sys
from pathlib import Path

Counts = dict[str, dict[str, int]]

# A call more a request is 2.4 % of the shortest ones.
TOLERANCE = 0.02
BLOCKS_A_ROUND = 1.0  # they are few; half a one comes and goes by chance
RENEW = "make work-counts"


def kept_file(version: tuple[int, int] = sys.version_info[:2]) -> Path:
    """Of one version of Python: instructions and blocks of memory are not those of another."""
    return Path(__file__).with_name(f"counts_{version[0]}_{version[1]}.json")


def differences(kept: Counts, found: Counts, rounds: int) -> list[str]:
    """A line for each count that is too far off, and for each request that only one side has.

    rounds  how many requests each count is the sum of.
    """
    lines = [f"{name}: is kept and was not counted" for name in kept.keys() - found.keys()]
    lines += [f"{name}: was counted and is not kept" for name in found.keys() - kept.keys()]
    for name in kept.keys() & found.keys():
        for what, now in found[name].items():
            before = kept[name].get(what, 0)
            allowed = BLOCKS_A_ROUND * rounds if what == "blocks" else TOLERANCE * before
            if abs(now - before) > allowed:
                way = "more" if now > before else "fewer"
                lines.append(f"{name}: {way} {what}, {now / rounds:.1f}, before {before / rounds:.1f}")
    return sorted(lines)


def message(lines: list[str]) -> str:
    """What a person is to do about differences."""
    return "\n".join(
        [
            "The broker does other work for usual requests than before:",
            *(f"  {line}" for line in lines),
            "More: find what is new (the test's docstring says how), or keep it and say why in the commit.",
            f"Fewer, or kept: `{RENEW}` writes {kept_file().name}; commit it with the change.",
        ]
    )
