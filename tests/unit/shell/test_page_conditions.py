"""A search of the page: which records fit each kind of condition, in batches as they are on disk."""

from __future__ import annotations

import json
from io import BytesIO

import pytest

from broker.shell.page.search import worker
from broker.shell.page.search.conditions import Condition
from broker.shell.page.search.worker import ABOUT, FILE, PIECE, run
from protocol.compression import LZ4
from protocol.record_batch import ABORT, TRANSACTIONAL, build_batch, control_batch

COUNT = 600
FIRST_MS = 1_700_000_000_000


def value(number: int) -> bytes:
    found = {"order": {"number": number, "items": [{"name": f"cup-{number}"}, {"name": "tea é"}], "paid": number == 7}}
    return json.dumps(found, ensure_ascii=number % 2 == 0).encode()  # é as two bytes, or as an escape


def row(number: int):
    headers = [("trace", f"t{number}".encode())] if number % 100 == 0 else []
    return f"table-{number}".encode(), value(number), headers, FIRST_MS + number * 1000


BATCHES = [
    build_batch([row(n) for n in range(at, at + 50)], base_offset=at, timestamp_ms=FIRST_MS, attributes=LZ4)
    for at in range(0, COUNT, 50)
]


def searched(batches: list[bytes], start: int = 0, begins: list[tuple[int, int]] | None = None, **job: object):
    """The lines of a search of one partition."""
    about = json.dumps({"start": start, "begins": begins or [], "open": []}).encode()
    pieces = [(ABOUT, about), *((0, batch) for batch in batches)]
    source = BytesIO(b"".join(PIECE.pack(number, len(data)) + data for number, data in pieces))
    out = BytesIO()
    run({"form": "page", "most": 1000, "aborted": False, **job}, source, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def searched_in_a_file(path, batches: list[bytes], cut: int = 0, **job: object):
    """The same of batches that stand in a file after other bytes. `cut`: so many bytes less are there than was said."""
    before, data = b"other", b"".join(batches)
    path.write_bytes(before + data[: len(data) - cut])
    with path.open("rb") as file:
        about = json.dumps({"start": 0, "begins": [], "open": []}).encode()
        where = json.dumps([0, file.fileno(), len(before), len(data)]).encode()
        source = BytesIO(PIECE.pack(ABOUT, len(about)) + about + PIECE.pack(FILE, len(where)) + where)
        out, paused = BytesIO(), list[int]()
        run({"form": "page", "most": 1000, "aborted": False, **job}, source, out, lambda: paused.append(1))
    return [json.loads(line) for line in out.getvalue().splitlines()], len(paused)


def offsets(lines) -> list[int]:
    return [line["hit"]["offset"] for line in lines if "hit" in line]


@pytest.mark.parametrize(
    ("job", "found"),
    [
        ({"key": "table-432"}, [432]),
        ({"value": '"cup-432"'}, [432]),
        ({"value": "table-432"}, []),
        ({"header": "t400"}, [400]),
        ({"header": "trace"}, [0, 100, 200, 300, 400, 500]),
        ({"anywhere": "t300"}, [300]),
        ({"anywhere": "cup-432"}, [432]),
        ({"anywhere": "table-432"}, [432]),
        ({"key": "table-1", "value": "cup-17"}, [17, *range(170, 180)]),
        ({"path": "$.order.number == 432"}, [432]),
        ({"path": "$.order.number = 432"}, [432]),
        ({"path": "$.order.number >= 598"}, [598, 599]),
        ({"path": "$.order.number < 2"}, [0, 1]),
        ({"path": "$.order.items[0].name == cup-432"}, [432]),
        ({"path": '$.order.items[*].name ~ "-432"'}, [432]),
        ({"path": '$["order"].*[0].name == "cup-5"'}, [5]),
        ({"path": '$.order.items[1].name == "tea é"', "key": "table-43"}, [43, *range(430, 440)]),
        ({"path": "$.order.paid == true"}, [7]),
        ({"path": "$.order.number == true"}, []),
        ({"path": "$.order.items[2]"}, []),
        ({"path": "$.absent"}, []),
        ({"path": "$.order.number == 4.32e2"}, [432]),
        ({"path": "$.order.number != 0", "key": "table-59"}, [59, *range(590, 600)]),
        ({"path": "$.order.number > 9007199254740992"}, []),
        ({"from_ms": FIRST_MS + 999, "to_ms": FIRST_MS + 3000}, [1, 2, 3]),
        ({"from_ms": FIRST_MS + 598_000}, [598, 599]),
        ({}, list(range(COUNT))),
    ],
)
def test_search_finds_what_fits_and_nothing_else(job, found):
    lines = searched(BATCHES, **job)
    assert offsets(lines) == found
    counts = {"records": COUNT, "bytes": sum(map(len, BATCHES)), "hits": len(found), "unreadable": 0}
    assert lines[-1] == {"end": "all", **counts}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("$.item == coffee", r'{"it\u0065m": "coffee"}'),
        ("$.item == coffee", r'{"item": "c\u006fffee"}'),
        ("$.item == a/b", r'{"item": "a\/b"}'),
        ("$.n ~ 000.0", '{"n": 1e3}'),
        ("$.n ~ fin", '{"n": 1e999}'),
        ("$.n ~ offee", '{"n": ["c", "coffee"]}'),
        ("$.n == 4321", '{"n" : 4.321e3}'),
        ("$.n < 9007199254740993", '{"n":9007199254740992}'),
        ("$.n >= -2", '{"m":1,"n":\n-2}'),
    ],
)
def test_text_that_is_written_another_way_is_found(path, text):
    batch = build_batch([(b"k", text.encode(), [], None)], timestamp_ms=1)
    assert offsets(searched([batch], path=path)) == [0]


def test_search_begins_at_an_offset_and_ends_where_enough_is_found():
    lines = searched(BATCHES, start=130, path="$.order", most=3)
    assert offsets(lines) == [130, 131, 132]
    assert lines[-1]["end"] == "most"


def test_search_goes_on_after_a_batch_that_cannot_be_read():
    broken = BATCHES[1][:61] + b"\xff" * (len(BATCHES[1]) - 61)
    lines = searched([BATCHES[0], broken, BATCHES[2]])
    assert offsets(lines) == [*range(50), *range(100, 150)]
    assert lines[-1]["unreadable"] == 1


@pytest.mark.parametrize("with_aborted", [False, True])
def test_search_leaves_out_aborted_records_unless_asked(with_aborted):
    def written(offset: int, producer: int) -> bytes:
        settings = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "attributes": TRANSACTIONAL}
        return build_batch([(b"k", b"v", [], None)], base_offset=offset, timestamp_ms=1, **settings)

    marker = control_batch(ABORT, base_offset=2, timestamp_ms=1, producer_id=7, producer_epoch=0)
    batches = [written(0, 7), written(1, 8), marker, written(3, 7)]
    lines = searched(batches, begins=[(0, 7)], aborted=with_aborted)
    hits = [line["hit"] for line in lines if "hit" in line]
    found = [(hit["offset"], hit["outcome"]) for hit in hits]
    assert found == ([(0, "aborted")] if with_aborted else []) + [(1, "committed"), (3, "committed")]


@pytest.mark.parametrize("text", ["order", "", "$.a ==", "$.a b", "$..a", "$["])
def test_text_that_is_no_path_is_refused(text):
    with pytest.raises(ValueError, match=r"path begins|there may be"):
        Condition(text)


@pytest.mark.parametrize("read_bytes", [1, 100, 5000, 1 << 18])
def test_search_reads_a_file_in_pieces_of_whole_batches(tmp_path, monkeypatch, read_bytes):
    monkeypatch.setattr(worker, "READ_BYTES", read_bytes)
    lines, pauses = searched_in_a_file(tmp_path / "log", BATCHES, value="cup-43")
    assert offsets(lines) == offsets(searched(BATCHES, value="cup-43")) == [43, *range(430, 440)]
    assert (lines[-1]["end"], lines[-1]["records"], pauses) == ("all", COUNT, len(BATCHES))


def test_search_tells_its_progress_by_bytes_and_by_records(monkeypatch):
    monkeypatch.setattr(worker, "PROGRESS_RECORDS", 120)
    told = [line["progress"] for line in searched(BATCHES, value="cup-43") if "progress" in line]
    assert [(each["offset"], each["records"]) for each in told] == [(149, 150), (299, 300), (449, 450), (599, 600)]
    monkeypatch.setattr(worker, "PROGRESS_RECORDS", 10_000)
    assert not [line for line in searched(BATCHES, value="cup-43") if "progress" in line]
    monkeypatch.setattr(worker, "PROGRESS_BYTES", len(BATCHES[0]))
    assert [line for line in searched(BATCHES, value="cup-43") if "progress" in line]


def test_search_ends_in_a_file_where_enough_is_found(tmp_path):
    lines, _ = searched_in_a_file(tmp_path / "log", BATCHES, value="cup", most=3)
    assert (offsets(lines), lines[-1]["end"]) == ([0, 1, 2], "most")


@pytest.mark.parametrize("cut", [1, len(BATCHES[-1]), len(BATCHES[-1]) + 1])
def test_search_says_that_a_file_has_less_than_it_was_told(tmp_path, cut):
    lines, _ = searched_in_a_file(tmp_path / "log", BATCHES, cut, value="cup-43")
    assert "error" in lines[-1]
    assert "bytes too early" in lines[-1]["error"]
    assert offsets(lines) == [43, *range(430, 440)]
