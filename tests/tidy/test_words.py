"""Words of a translated idiom, counted: a stranger has to guess that `behind` an offset is after it.

Rewritten parts have none of them. The rest of broker/ and a few files have one limit for each word, which is lowered
as they are rewritten and never raised. Constants such as NOBODY, and names that only contain a word, do not count.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from source_tree import REPOSITORY, modules, text_of, tree_of

# Word -> what counts, and what to say instead.
WORDS = {
    "behind": (r"\b[Bb]ehind\b", "after"),
    "lies": (r"\b(lies|lie)\b", "is, are"),
    "nobody": (r"\b[Nn]obody\b", "no client, no test, nothing"),
    "somebody": (r"\b[Ss]omebody\b", "a client, another user"),
    "anew": (r"\banew\b", "again"),
    "Answers": (r"(?<=\"\"\")Answers\b|[.;] Answers (?!are\b)", "Returns"),
}
RIGHT = re.compile(  # right English: less far, in front of what it hides, or not taken along
    r"[Bb]ehind (a|the) proxy|[Rr]ecords behind|group was behind|(leave|leaves|left) [\w ]*\bbehind|"
    r"ahead of.*behind|event: behind|_event\(\"behind\"|behind: \$|"
    r"^\s+behind = groups\.lag|groups\.top\(behind|counted\.join\(behind"
)
SUFFIXES = {".py", ".md", ".js", ".html"}
TREES = ("protocol", "storage", "momus", "pipeline", "benchmarks", "tools", "examples", "docs")
ROOMS = (
    *("authorization", "cluster", "config", "coordinator/groups", "coordinator/offsets", "journal", "quotas"),
    *("refusals", "security", "shell", "upkeep"),
)
DONE = (*TREES, *(f"broker/{room}" for room in ROOMS))
REST = "the rest"
IN_REST = {"momus/faults.py", "protocol/shape.py", "broker/shell/page/static/faults.js"}
REST_LIMITS = {"behind": 48, "lies": 12, "nobody": 10, "somebody": 3, "anew": 8, "Answers": 12}


# Names that say nothing of what they name -> what to say instead. Where some are left, so many may be left.
EMPTY_NAMES = {
    "Beside": "what is done there: DiskThread, ReadFile",
    "Wish": "who asks for what: AcquireRequest",
    "Behind": "what comes after what: NewBatches",
    "Taken": "what was taken: AcquiredRecords",
    "Live": "of what: LivePartition",
    "Place": "the key that it is: PartitionKey, QueuePartition",
    "Room": "what is counted: ConnectionCount",
    "Doors": "what they do: Receivers",
    "Complaints": "DecodeErrors",
    "halted": "read_paused",
    "muted": "throttled",
    "stuffed": "write_paused",
    "barred": "awaits_sync",
    "pass_by": "disable_shortcuts",
    "client_settings": "what they are: client_records, client_configs, connection_options",
}
NAMES_LEFT = {"Place": 7, "client_settings": 4}  # in the control plane, and one function of client_configs.py
PACKAGES = ("protocol", "storage", "broker", "momus", "pipeline")


def names_in(path: Path) -> Counter[str]:
    """How often a file uses each of EMPTY_NAMES as a name: in its code, not in its texts, or as the file's own."""
    found = Counter(each for each in EMPTY_NAMES if path.stem == each.lower())
    is_named = re.search(rf"\b({'|'.join(EMPTY_NAMES)})\b", text_of(path))  # most files need not be walked
    for node in ast.walk(tree_of(path)) if is_named else ():
        for field in ("id", "attr", "name", "arg"):
            if (name := getattr(node, field, None)) in EMPTY_NAMES:
                found[name] += 1
    return found


def part_of(name: str) -> str:
    """The rewritten folder that holds a file, or REST."""
    return REST if name in IN_REST else next((part for part in DONE if name.startswith(f"{part}/")), REST)


def count(texts) -> dict[str, Counter[str]]:
    """Part -> how often each word is in its lines. texts: (name of a file, its text)."""
    found: dict[str, Counter[str]] = {}
    for name, text in texts:
        counter = found.setdefault(part_of(name), Counter())
        for line in text.splitlines():
            if not RIGHT.search(line):
                for word, (pattern, _) in WORDS.items():
                    counter[word] += len(re.findall(pattern, line))
    return found


def files():
    for tree in (*TREES, "broker"):
        for path in sorted((REPOSITORY / tree).rglob("*")):
            name = path.relative_to(REPOSITORY).as_posix()
            if path.suffix in SUFFIXES and "node_modules" not in name:
                yield name, path.read_text()


def test_words_of_the_idiom_do_not_come_back():
    found = count(files())
    assert found.keys() == {*DONE, REST}
    wrong = [
        f"{part}: {found[part][word]} times {word!r}, the limit is {limit}; say {plain}"
        for part in found
        for word, (_, plain) in WORDS.items()
        if found[part][word] > (limit := REST_LIMITS[word] if part == REST else 0)
    ]
    assert not wrong


def test_names_that_say_nothing_do_not_come_back():
    found = sum((names_in(path) for path in modules(*PACKAGES).values()), Counter())
    wrong = [
        f"{name}: {n} times, the limit is {NAMES_LEFT.get(name, 0)}; say {EMPTY_NAMES[name]}"
        for name, n in found.items()
        if n > NAMES_LEFT.get(name, 0)
    ]
    assert not wrong
    assert {name: found[name] for name in NAMES_LEFT} == NAMES_LEFT, "there are fewer: lower the limit"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("# the batch behind an offset", ["behind"]),
        ("# it lies in a folder that nobody reads", ["lies", "nobody"]),
        ('    """Answers the offset."""', ["Answers"]),
        ('    """Append. Answers the offset."""', ["Answers"]),
        ("# made anew when somebody asks", ["somebody", "anew"]),
        ("# a broker behind a proxy", []),
        ("NOBODY = -1; is_behind = True  # Answers are compared", []),
    ],
)
def test_counted_are_the_words_and_not_their_right_uses(line, words):
    assert [word for word in WORDS if count([("storage/x.py", line)])["storage"][word]] == words
