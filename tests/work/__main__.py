"""Counts the work of usual requests: `python -m work`, with PYTHONPATH=.:tests and PYTHONHASHSEED=0.

    python -m work                      the counts, as JSON
    python -m work --renew              keeps them as the measure
    python -m work --calls REQUEST      the functions that one kind of request calls, and how often, in ROUNDS requests

It is a process of its own, so that no other test has filled a cache before.
"""

from __future__ import annotations

import argparse
import json
import sys

from work.counts import kept_file
from work.meters import METERS, CallsByName, measure


def main() -> None:
    """Print the counts, or write them into the file of this version of Python."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("--calls", metavar="REQUEST")
    options = parser.parse_args()
    found = measure((CallsByName,) if options.calls else METERS)
    if options.calls:
        counts = found.get(options.calls) or sys.exit(f"one of: {', '.join(found)}")
        for name, times in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
            sys.stdout.write(f"{times:8} {name}\n")
    elif options.renew:
        kept_file().write_text(json.dumps(found, indent=1) + "\n")
    else:
        sys.stdout.write(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
