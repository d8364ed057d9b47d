"""JSON that is read in slices: the same values and refusals as Python's own reader, within its limits."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from broker.shell.control import large_json
from broker.shell.control.http import SHORT, HttpServer, in_slices
from broker.shell.control.large_json import ITEM, MOST_DEPTH, MOST_NAMES, PIECE, LargeJson
from broker.shell.control.routes import SLICE, RefusedError, checking

LETTERS = 'ab"\\\n\u00e9\u20ac\U0001f600\ud800/ x'
SHORTEST = 60  # of a piece that holds every name, number and escape that is made here


def made(chance, depth):
    kind = chance.random()
    if depth and kind < 0.5:
        rows = [made(chance, depth - 1) for _ in range(chance.randrange(6))]
        return rows if kind < 0.25 else {letters(chance)[:2]: row for row in rows}
    return chance.choice([None, True, False, chance.randrange(10**9), -chance.random(), 1e300, letters(chance)])


def letters(chance):
    return "".join(chance.choices(LETTERS, k=chance.randrange(20)))


def broken(chance, data):
    place = chance.randrange(len(data))
    return data[:place] + bytes([chance.choice(b'[]{},:"\\ 1a\x00')]) + data[place + chance.randrange(2) :]


def read(data):
    """The value, how many slices it took, and its reader. Errors: ValueError."""
    reader, slices = LargeJson(data), 1
    reading = reader.reading()
    try:
        while True:
            next(reading)
            slices += 1
    except StopIteration as end:
        return end.value, slices, reader


def outcome(read, data):
    try:
        return repr(read(data))
    except ValueError:
        return "no JSON"


@pytest.mark.parametrize("piece", [SHORTEST, 100, 300])
def test_texts_are_read_or_refused_as_by_pythons_reader(monkeypatch, piece):
    monkeypatch.setattr(large_json, "PIECE", piece)
    chance = random.Random(piece)
    for number in range(400):
        text = json.dumps(made(chance, 4), ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 1]))
        data = text.encode("utf-8", "surrogatepass")
        if number % 3 == 0:
            data = broken(chance, data)
        assert outcome(lambda each: read(each)[0], data) == outcome(json.loads, data), data


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_texts_are_read_in_each_encoding_of_json(encoding):
    value = {"name": "\u20ac" * PIECE, "rows": list(range(PIECE))}
    assert read(json.dumps(value, ensure_ascii=False).encode(encoding))[0] == value


LONG = {
    "spaces": b" " * 40 * PIECE + b"1",
    "a text": b'"' + b"x" * 40 * PIECE + b'"',
    "escapes": b'"' + b"\\ud83d\\ude00" * 4 * PIECE + b'"',
    "lists": b"[" + b"[]," * 14 * PIECE + b"1]",
    "names": b"{" + b",".join(b'"%x":1' % number for number in range(MOST_NAMES)) + b"}",
    "numbers": b"[" + b"1," * 20 * PIECE + b"1]",
    "long lists": b"[" + b",".join([b"[" + b"7," * PIECE + b"7]"] * 20) + b"]",
    "one in the other": b"[" * MOST_DEPTH + b'"' + b"x" * 40 * PIECE + b'"' + b"]" * MOST_DEPTH,
}


@pytest.mark.parametrize("what", LONG)
def test_no_slice_reads_much_more_than_a_piece(what):
    value, slices, _ = read(LONG[what])
    assert value == json.loads(LONG[what])
    assert slices > len(LONG[what]) / PIECE / 3


VALUES, NAMES = 2 * PIECE, PIECE
REFUSED = {
    "values": (b"[" + b"[]," * (VALUES // 2) + b"1]", f"more than {VALUES} values"),
    "names": (b"{" + b",".join(b'"%x":1' % number for number in range(NAMES + 1)) + b"}", f"{NAMES} names"),
    "depth": (b"[" * (MOST_DEPTH + 1) + b'"' + b"x" * 2 * PIECE + b'"' + b"]" * (MOST_DEPTH + 1), "too deeply"),
    "depth without end": (b"[" * 4 * PIECE, "too deeply"),
    "a name": (b'{"' + b"x" * 2 * PIECE + b'":1' + b" " * PIECE + b"}", "a name has more than 16384 characters"),
    "digits": (b"[1." + b"1" * 2 * PIECE + b"]" + b" " * PIECE, "more than 16384 digits"),
    "a text without end": (b'"' + b"x" * 4 * PIECE, "a text has no end"),
    "a control character": (b'["' + b"x" * 2 * PIECE + b"\n" + b"x" * 2 * PIECE + b'"]', "control character"),
    "an escape": (b'["' + b"x" * 2 * PIECE + b"\\u12x4" + b"x" * 2 * PIECE + b'"]', "an escape"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_too_much_or_is_no_json_is_refused_in_words(monkeypatch, what):
    monkeypatch.setattr(large_json, "MOST_VALUES", VALUES)
    monkeypatch.setattr(large_json, "MOST_NAMES", NAMES)
    data, why = REFUSED[what]
    with pytest.raises(ValueError, match=why):
        read(data)


def test_limits_are_reached(monkeypatch):
    monkeypatch.setattr(large_json, "MOST_VALUES", VALUES)
    assert len(read(b"[" + b"1," * (VALUES - 2) + b"1]")[0]) == VALUES - 1


def test_commas_and_brackets_of_texts_are_no_values(monkeypatch):
    monkeypatch.setattr(large_json, "MOST_VALUES", VALUES)
    rows = [[',[{,\\",'] * 3] * (VALUES // 8)
    assert read(json.dumps(rows).encode())[0] == rows


def emptied(reader):
    """In how many slices."""
    return sum(1 for _ in reader.freeing())


def test_value_is_taken_apart_in_slices_once_nobody_has_it():
    value, _, reader = read(LONG["long lists"])
    del value
    assert emptied(reader) > 20 * (PIECE + 1) * ITEM / PIECE / 2


@pytest.mark.parametrize("is_whole", [True, False])
def test_value_that_somebody_has_stays_whole(is_whole):
    value, _, reader = read(LONG["long lists"])
    kept = value if is_whole else value[3]
    del value
    emptied(reader)
    assert kept == (json.loads(LONG["long lists"]) if is_whole else [7] * (PIECE + 1))


class Server(HttpServer):
    def __init__(self):
        super().__init__(self.answered)
        self.items = []

    async def answered(self, method, target, body):
        self.items.append(len(body["rows"]))


def test_large_body_is_read_by_a_server_and_given_up_once_it_is_answered(monkeypatch):
    body, freed = b'{"rows":[' + b"[]," * 10 * SHORT + b"1]}", []

    class Counted(LargeJson):
        def freeing(self):
            freed.append(sum(1 for _ in super().freeing()))
            yield

    monkeypatch.setattr(large_json, "LargeJson", Counted)

    async def played():
        server = Server()
        host, _, port = (await server.open("127.0.0.1", 0)).rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        answer = await reader.read()
        writer.close()
        await server.close()
        assert answer.startswith(b"HTTP/1.1 200")
        assert server.items == [10 * SHORT + 1]
        assert freed[0] > 10 * SHORT * ITEM / PIECE / 2

    asyncio.run(played())


def test_others_have_their_turn_between_slices():
    async def played():
        reading, turns = asyncio.create_task(in_slices(LargeJson(LONG["lists"]).reading())), 0
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns > len(LONG["lists"]) / PIECE / 3

    asyncio.run(played())


def test_items_of_a_body_are_checked_in_slices():
    shape = {"offsets": [{"topic": str}], "names": {"*": int}}
    body = {"offsets": [{"topic": "t"}] * 4 * SLICE, "names": {str(number): number for number in range(3 * SLICE)}}
    assert sum(1 for _ in checking("", shape, body)) == 7
    body["offsets"].append({"topic": 1})
    with pytest.raises(RefusedError, match=r'"offsets\[2000\].topic" takes a text'):
        list(checking("", shape, body))
