"""A search by a JSON path passes over values and batches by their bytes, and finds what a parse of each value finds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from budget import budget
from hypothesis import example, given
from hypothesis import strategies as st

from broker.shell.page.search.conditions import Condition
from broker.shell.page.search.worker import ABOUT, PIECE, run
from protocol.record_batch import build_batch

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
TEXTS = ("", "coffee", "a/b", "é", "null", "in", "4", "4.5", "\n", 'q"', "\\", "Na", "e", "\ud800", "n/")
NUMBERS = ("4", "4.5", "-0", "4.50", "45e-1", "1e999", "NaN", "Infinity", "-Infinity", "4e0", "0.4", "40", "-4", "4E+1")
STEPS = ("a", "b", "é", "a/b", 'q"', "0", "\ud800")


def escaped(text: str, how: int) -> str:
    """A text as JSON, in one of the ways to write it."""
    if how == 0:
        return json.dumps(text)
    if how == 1:
        return json.dumps(text, ensure_ascii=False).replace("/", "\\/")
    if how == 2:
        return '"' + "".join(f"\\u{ord(each):04x}" for each in text) + '"'
    return json.dumps(text, ensure_ascii=False)


strings = st.builds(escaped, st.sampled_from(TEXTS), st.integers(0, 3))
names = st.builds(escaped, st.sampled_from(STEPS), st.integers(0, 3))
blanks = st.sampled_from(("", "", " ", "\n\t"))
leaves = st.one_of(strings, st.sampled_from((*NUMBERS, "true", "false", "null", "nope")))


def _listed(items: list[str], blank: str) -> str:
    return f"[{blank}{f',{blank}'.join(items)}{blank}]"


def _object(pairs: list[tuple[str, str]], blank: str) -> str:
    return "{" + f"{blank},".join(f"{blank}{name}{blank}:{blank}{value}" for name, value in pairs) + "}"


documents = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(_listed, st.lists(inner, max_size=3), blanks),
        st.builds(_object, st.lists(st.tuples(names, inner), max_size=3), blanks),
    ),
    max_leaves=6,
)
values = st.builds(
    lambda text, encoding, blank: (blank + text).encode(encoding, "surrogatepass"),
    documents,
    st.sampled_from((*["utf-8"] * 8, *ENCODINGS)),
    blanks,
)
signs = st.sampled_from(("==", "==", "~", "~", "!=", "<", ">=", ""))
others = st.one_of(strings, st.sampled_from((*NUMBERS, "true", "false", "null", "coffee", "a/b", "4.", "fin", "ull")))


def reached(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """A value and all in it, with their paths."""
    yield path, value
    if isinstance(value, dict):
        for name, each in value.items():
            yield from reached(each, f"{path}[{json.dumps(name)}]")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from reached(each, f"{path}[{index}]")
        yield from reached(value[0], f"{path}[*]") if value else ()


def parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return {"a": 4}


@st.composite
def searches(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """Values, and a condition that is often about something in one of them."""
    found = draw(st.lists(values, min_size=1, max_size=3))
    path, value = draw(st.sampled_from(list(reached(parsed(found[0])))))
    sign = draw(signs)
    if not sign:
        return path, found
    same = json.dumps(value, ensure_ascii=draw(st.booleans()))
    start = draw(st.integers(0, len(same) - 1))
    part = same[start : start + draw(st.integers(1, 4))].strip()
    return f"{path} {sign} {draw(st.one_of(st.just(same), st.just(part or '4'), others))}", found


class Parsing(Condition):
    """Looks at no bytes before it parses."""

    def may_be_in(self, data: bytes) -> bool:
        return True


ODD = (b"", b"1,2", b"[3", b"4]", b'"a', b'a"', b'{"a":4', b"}", b"\xff", b'{"a":4}x', b"[" * 2000, b" 4", b"4,")
rows = st.one_of(values, values, st.none(), st.sampled_from(ODD))


@budget(100)
@given(searches(), st.lists(st.tuples(st.integers(0, 8), rows), max_size=4), st.booleans(), st.integers(0, 2))
@example(("$ ~ 4321", [b"4.321e3"]), [], False, 0)
@example(('$["a"] > 4', [b'{"a": Infinity}']), [], False, 0)
@example(('$["a"] == 4', ['{"a": 4}'.encode("utf-32-be")]), [], False, 0)
@example(('$ == "coffee"', ['"coffee"'.encode("utf-32-be")]), [], False, 0)
@example(("$[0] ~ 4.5", ["[45e-1]".encode("utf-16")]), [], False, 0)
@example(('$["a"] ~ 4321', [b'{"a": 4.321e3}']), [], False, 0)
@example(('$["a"] ~ 4321', [b'{"a": {"b": [4.321e3]}}']), [], False, 0)
@example(('$["\\ud800"] == 4', [rb'{"\ud800": 4}']), [], False, 0)
@example(('$["a/b"] == 4', [rb'{"a\/b": 4}']), [], False, 0)
@example(('$["a"] ~ fin', [b'{"a":[4,1e999]}']), [], False, 0)
@example(('$["a"] == true', ['{"a":true}'.encode("utf-16")]), [], False, 0)
# what would be the values of one list, or none, if all were parsed as one
@example(("$ != 3", [b"1,2", b"[3", b"4]", b"5"]), [], False, 0)
@example(("$ != 9", [b"9,9,9", b"5", b"[3", b"4]"]), [], False, 0)
@example(("$ != 9", [b"4", b"5]"]), [], False, 0)
@example(("$[0] != 3", [b"[1", b"2]"]), [], False, 0)
@example(("$[0] == 1", [b"[1]", b"1]", b"[1", b'"1"', b"[]", b'{"0":1}', b"[1,"]), [], False, 0)
@example(("$[1] ~ 1", [b'"11"', b"[0,1]", b"[1]"]), [], False, 0)
@example(('$["a"]', [b'{"a":1}', b'"a"', b'["a"]', b"null", b'{"b":"a"}']), [], False, 0)
@example(('$["a"][*] == 1', [b'{"a":[0,1]}', b'{"a":{"b":1}}', b'{"a":1}']), [(1, None)], False, 1)
@example(('$["a"]["b"] != 1', [b'{"a":{"b":1}}', b'{"a":{"b":true}}', b'{"a":{}}']), [], False, 1)
@example(('$["a"] != "1"', [b'{"a":"1"}', b'{"a":1}', b'{"b":"1"}']), [], True, 0)
def test_search_by_bytes_and_batches_first_finds_what_a_parse_of_each_value_finds(search, more, is_broken, start):
    text, found = search
    found = list(found)
    for place, value in more:
        found.insert(place, value)
    expected = [offset for offset, value in enumerate(found) if offset >= start and Parsing(text).fits(value)]
    at_once = Condition(text).fitting(found)
    assert at_once is None or at_once == [at for at, value in enumerate(found) if Parsing(text).fits(value)]
    batch = build_batch([(b"k", value, [], None) for value in found], timestamp_ms=1)
    if is_broken:  # it says that it has one more
        batch = batch[:57] + (len(found) + 1).to_bytes(4, "big") + batch[61:]
    pieces = [(ABOUT, json.dumps({"start": start, "begins": [], "open": []}).encode()), (0, batch)]
    out = BytesIO()
    job = {"form": "page", "most": 100, "aborted": False, "path": text}
    run(job, BytesIO(b"".join(PIECE.pack(number, len(data)) + data for number, data in pieces)), out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["hit"]["offset"] for line in lines if "hit" in line] == expected
