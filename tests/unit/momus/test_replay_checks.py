"""Recordings from somebody else: whatever is wrong with one is a sentence with the file's name, and takes little."""

from __future__ import annotations

import json
import random
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from momus.cli.replay.bundle import CALLED, EVENT, SENT, TOOK, WAITED, Bundle, BundleError

SAMPLE = Path(__file__).parents[2] / "e2e" / "samples" / "0.1.0" / "run.momus"


def parts():
    with zipfile.ZipFile(SAMPLE) as file:
        return {name: file.read(name) for name in file.namelist()}


def write(path, rows):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in rows.items():
            file.writestr(name, data)
    return path


def about(**changes):
    return {**parts(), "about.json": json.dumps({**json.loads(parts()["about.json"]), **changes})}


def event(kind, data=b"", size=None, at_ms=1_795_754_726_400):
    return {**parts(), "events": parts()["events"] + EVENT.pack(kind, 1, 1, at_ms, size or len(data)) + data}


WRONG = {
    "no about": ({"events": b""}, "no item named 'about.json'"),
    "no events": ({"about.json": parts()["about.json"]}, "no item named 'events'"),
    "about that is no JSON": ({**parts(), "about.json": b"{"}, "Expecting property name"),
    "about that is deep": ({**parts(), "about.json": b"[" * 100_000}, "is not a run that momus has kept"),
    "about that is a list": ({**parts(), "about.json": b"[]"}, "about.json is no object"),
    "another format": (about(format=[2]), "it has format [2]; this momus reads 1"),
    "brokers in words": (about(brokers="3"), "brokers takes a number from 1 to 100, and is '3'"),
    "a thousand brokers": (about(brokers=1000), "brokers takes a number from 1 to 100"),
    "true brokers": (about(brokers=True), "brokers takes a number"),
    "fewer brokers": (about(node_ids=[1, 2, 3]), "1 brokers, and 3 node_ids"),
    "one broker twice": (about(brokers=2, node_ids=[1, 1]), "node_ids takes a list of numbers"),
    "a moment beyond time": (about(start_ms=10**18), "start_ms takes Unix milliseconds"),
    "no moment": (about(start_ms=None), "start_ms takes Unix milliseconds"),
    "a seed in words": (about(seed="x"), "seed takes a number or null"),
    "another flush": (about(flush="never"), "flush takes memory, os or fsync"),
    "settings in a list": (about(config=["a"]), "config takes an object of settings"),
    "settings in settings": (about(config={"a": {}}), "config takes an object of settings"),
    "a key of this machine": (about(config={"ssl.keystore.location": "/etc/x"}), "no setting ssl.keystore.location"),
    "topics in words": (about(upstream=True, topics={"t": "3"}), "topics takes an object of numbers"),
    "half an event": ({**parts(), "events": parts()["events"] + b"\0" * 5}, "is cut off"),
    "an event that is longer": (event(TOOK, b"abc", 4000), "has 4000 bytes, of which 3 are there"),
    "a kind of its own": (event(9), "is of kind 9"),
    "a moment before time": (event(TOOK, at_ms=-1), "there is no such event"),
    "a frame that is longer": (event(SENT, b"\0\0\0\x09ab"), "a frame that is longer than the event"),
    "half a frame's size": (event(SENT, b"\0\0"), "a frame that is longer than the event"),
    "a call that is no JSON": (event(CALLED, b"{"), "is not a run that momus has kept"),
    "a call without a path": (event(CALLED, b'{"method": "POST", "body": {}}'), "no call of the control plane"),
    "a call with a list": (event(CALLED, b'{"method": "POST", "path": "/", "body": []}'), "no call of the control"),
    "a call elsewhere": (event(CALLED, b'{"method": "GET", "path": "/../..", "body": {}}'), "is a call of"),
    "a call of two lines": (event(CALLED, b'{"method": "GET", "path": "/ HTTP/1.1\\r\\n", "body": {}}'), "is a call"),
    "a wait of one byte": (event(WAITED, b"\0"), "is of kind 5, with 1 bytes"),
    "a file above": ({**parts(), "start/../../x": b""}, "a file that would be elsewhere"),
    "a file at the root": ({**parts(), "start//etc/x": b""}, "a file that would be elsewhere"),
    "a folder": ({**parts(), "start/a/": b""}, "a file that would be elsewhere"),
    "a bomb of events": ({**parts(), "events": bytes(100 << 20)}, "it would unpack to"),
    "a bomb of files": ({**parts(), **{f"start/{at}": bytes(40 << 20) for at in range(2)}}, "it would unpack to"),
    "a large about": ({**parts(), "about.json": b" " * (5 << 20)}, "about.json would have 5242880 bytes"),
}


@pytest.mark.parametrize("what", WRONG)
def test_file_that_is_no_recording_is_refused_by_its_name(what, tmp_path):
    rows, why = WRONG[what]
    path = str(write(tmp_path / "theirs.momus", rows))
    tracemalloc.start()
    try:
        with pytest.raises(BundleError) as refused:
            Bundle(path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert str(refused.value).startswith(f"{path} is not a run that momus has kept: ")
    assert why in str(refused.value)


def test_file_that_is_cut_off_anywhere_or_has_another_byte_is_refused_or_read(tmp_path):
    whole, chance = SAMPLE.read_bytes(), random.Random(1)
    path = tmp_path / "theirs.momus"
    for _ in range(300):
        data = bytearray(whole[: chance.randrange(len(whole))] if chance.random() < 0.3 else whole)
        for _ in range(chance.choice((0, 1, 5)) if len(data) < len(whole) else 3):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        problem = str(path)
        try:
            bundle = Bundle(str(path))
            list(bundle.events())
            bundle.unpack_start(tmp_path / "start")
        except BundleError as error:
            problem = str(error)
        assert str(path) in problem


def test_sample_is_read_as_it_is():
    assert Bundle(str(SAMPLE)).about["brokers"] == 1
