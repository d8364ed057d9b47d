"""The journal of a run as a few lines: from the request that met the fault on, without what says nothing."""

from __future__ import annotations

from momus import Cluster, JournalEntry

MOST = 10  # lines


def line(entry: JournalEntry, begun_ms: int) -> str:
    """A request and its reply."""
    latency = entry["latency_ms"]
    words = [f"{entry['api']} v{entry['version']}", *entry["errors"]]
    words.append("no reply" if latency is None else f"{latency:.0f} ms" if latency >= 10 else "")
    words.append("(the fault)" if "fault" in entry else "")
    return f"+{(entry['at_ms'] - begun_ms) / 1000:.2f} s  {' '.join(filter(None, words))}"


def extract(cluster: Cluster) -> list[str]:
    """At most MOST lines; what comes again and again is one line with its number."""
    entries = cluster.journal.entries()
    first = next((at for at, entry in enumerate(entries) if "fault" in entry), 0)
    begun_ms = entries[first]["at_ms"] if entries else 0
    lines: list[tuple[str, str, int]] = []  # what it is, its line, how often
    for entry in entries[first:]:
        what = f"{entry['api']} {entry['errors']} {entry['latency_ms'] is None} {'fault' in entry}"
        seen = next((at for at, each in enumerate(lines) if each[0] == what), None)
        if seen is not None and "fault" not in entry and what in (each[0] for each in lines[-4:]):
            lines[seen] = (what, lines[seen][1], lines[seen][2] + 1)
        else:
            lines.append((what, line(entry, begun_ms), 1))
    shown = [text if count == 1 else f"{text}, {count} times" for _, text, count in lines]
    return shown if len(shown) <= MOST else [*shown[: MOST - 3], f"... {len(shown) - MOST + 1} more ...", *shown[-2:]]
