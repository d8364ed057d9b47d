"""The checker of power cuts: its disk, its ledger, and its short form. `make power-cuts` is the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from power_cuts.campaign import main
from power_cuts.disk import Disk, File, torn
from power_cuts.ledger import NEVER, Ledger
from power_cuts.recording import Event, environment, events, why_not

cannot_record = pytest.mark.skipif(bool(why_not()), reason=why_not())
SEEDS = 300


def disk_of(*changes: tuple[str, int, int, str, str]) -> Disk:
    """A disk after some events: what, inode, place, and two texts."""
    disk = Disk("/d")
    for at, (what, inode, place, first, more) in enumerate(changes):
        disk.apply(Event(at, what, inode, place, first.encode(), more.encode()))
    return disk


def cuts(disk: Disk) -> set[tuple[tuple[str, bytes], ...]]:
    """All that was found on it, cut again and again."""
    return {tuple(sorted(disk.cut(Random(seed)).items())) for seed in range(SEEDS)}


CREATED = (("c", 1, 0, "/d/a", ""), ("w", 1, 0, "", "hello"))
SYNCED = (("b", 1, 1, "", ""), ("s", 1, 1, "", ""))
NAMED = (("b", 9, 2, "", ""), ("d", 9, 2, "", ""))


def test_synced_file_whose_name_is_synced_is_there():
    assert cuts(disk_of(*CREATED, *SYNCED, *NAMED)) == {(("a", b"hello"),)}


def test_name_that_is_not_synced_may_be_lost_and_the_file_with_it():
    assert cuts(disk_of(*CREATED, *SYNCED)) == {(), (("a", b"hello"),)}


def test_bytes_that_are_not_synced_may_be_lost_torn_or_zero():
    found = {dict(each)["a"] for each in cuts(disk_of(*CREATED, *NAMED))}
    assert {b"", b"hello", bytes(5)} <= found


def test_what_is_written_while_a_sync_runs_is_not_synced_by_it():
    begun, ended = SYNCED
    found = cuts(disk_of(*CREATED, *NAMED, begun, ("w", 1, 5, "", " you"), ended))
    assert {dict(each)["a"][:5] for each in found} == {b"hello"}
    assert {dict(each)["a"] for each in found} >= {b"hello", b"hello you"}


def test_rename_is_whole_or_not_at_all():
    disk = disk_of(*CREATED, *SYNCED, *NAMED, ("r", 1, 0, "/d/a", "/d/b"))
    assert cuts(disk) == {(("a", b"hello"),), (("b", b"hello"),)}


def test_removed_file_may_be_back_until_its_directory_is_synced():
    gone = (*CREATED, *SYNCED, *NAMED, ("u", 1, 0, "/d/a", ""))
    assert cuts(disk_of(*gone)) == {(), (("a", b"hello"),)}
    assert cuts(disk_of(*gone, ("b", 9, 3, "", ""), ("d", 9, 3, "", ""))) == {()}


def test_file_in_a_directory_whose_name_is_lost_is_lost():
    disk = disk_of(("m", 2, 0, "/d/x", ""), ("c", 1, 0, "/d/x/a", ""), ("b", 2, 1, "", ""), ("d", 2, 1, "", ""))
    assert cuts(disk) == {(), (("x/", b""), ("x/a", b""))}


def test_bytes_written_in_place_are_the_old_or_the_new_ones():
    disk = disk_of(*CREATED, *SYNCED, *NAMED, ("w", 1, 0, "", "j"))
    assert {dict(each)["a"] for each in cuts(disk)} >= {b"hello", b"jello"}


def test_cut_file_may_be_as_long_as_before():
    file = File()
    file.now, file.durable = bytearray(b"abc"), b"abcdef"
    assert {torn(file, Random(seed)) for seed in range(SEEDS)} >= {b"abc", b"abcdef"}


def test_ledger_asks_for_what_was_told_before_the_cut():
    ledger = Ledger()
    early, late = ledger.ask("record", 10), ledger.ask("record", 20)
    early.told, late.told = 30, 40
    views = {cut: ledger.view(cut) for cut in (5, 15, 35, 45)}
    assert [(len(view.must), len(view.may)) for view in views.values() if view] == [(0, 0), (0, 1), (1, 1), (2, 0)]
    assert late.told < NEVER


def test_ledger_goes_back_to_the_snapshot_with_a_restore():
    ledger = Ledger()
    for kind, asked, told in (
        ("record", 1, 2),
        ("snapshot", 5, 9),
        ("record", 6, 7),
        ("record", 20, 21),
        ("fork", 22, 30),
    ):
        ledger.ask(kind, asked, name="s", snapshot="s").told = told
    ledger.ask("restore", 40, name="s").told = 50
    ledger.ask("record", 60).told = 61
    assert ledger.view(45) is None
    view = ledger.view(70)
    assert view is not None
    assert [entry.asked for entry in view.must] == [1, 60]
    assert [entry.asked for entry in view.may] == [6]
    assert [(name, [entry.asked for entry in fork.must]) for name, fork in ledger.forks(35)] == [("s", [1])]


PROGRAM = """
import os, sys
folder = sys.argv[1]
os.mkdir(folder + "/sub")
with open(folder + "/sub/new.tmp", "wb") as file:
    file.write(b"one")
    file.flush()
    os.fsync(file.fileno())
os.replace(folder + "/sub/new.tmp", folder + "/sub/new")
fd = os.open(folder + "/log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
os.writev(fd, [b"ab", b"cd"])
os.write(fd, b"ef")
os.ftruncate(fd, 3)
os.fdatasync(fd)
other = os.open(folder + "/log", os.O_RDWR)
os.pwrite(other, b"X", 1)
os.link(folder + "/log", folder + "/second")
names = os.open(folder, os.O_RDONLY)
os.fsync(names)
os.remove(folder + "/log")
"""


@pytest.mark.heavy
@cannot_record
def test_recorder_writes_down_all_that_a_program_does(tmp_path):
    root, recording = tmp_path / "root", tmp_path / "recording"
    root.mkdir()
    env = environment(root, recording, sync_us=10)
    subprocess.run([sys.executable, "-c", PROGRAM, str(root)], env=env, check=True)
    disk = Disk(str(root))
    for event in events(recording):
        disk.apply(event)
    left = disk.cut(Random(1))
    assert left["second"] in {b"aXc", b"abc"}
    assert disk.root.now.keys() == set(os.listdir(root)) == {"sub", "second"}
    assert bytes(disk.root.now["second"].now) == Path(root, "second").read_bytes() == b"aXc"
    assert {"log", "second", "sub"} >= disk.root.durable.keys() >= {"second", "sub"}


@cannot_record
@pytest.mark.slow
@pytest.mark.parametrize("flush", ["fsync", "os"])
def test_what_was_acknowledged_at_fsync_is_there_after_any_cut_and_at_os_it_is_not(tmp_path, flush):
    words = ["--cuts", "80", "--cuts-a-run", "80", "--seconds", "2", "--flush", flush, "--state", str(tmp_path)]
    assert main([*words, "--process", "20" if flush == "fsync" else "0"]) == 0
