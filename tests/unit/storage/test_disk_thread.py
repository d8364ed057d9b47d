"""Work of the background thread of the disk: in order, in one thread, and freeing bytes is part of it."""

import os
import threading

import pytest

from storage.files.disk import SystemFiles
from storage.files.disk_thread import MOST_WAITING, DiskThread


def wait_for(done):
    while not done():
        pass


def test_work_is_done_in_the_order_in_which_it_was_given_by_one_other_thread():
    thread, seen = DiskThread(), []
    for n in range(20):
        done = thread.start(lambda n=n: seen.append((n, threading.get_ident())))
    wait_for(done)
    assert [n for n, _ in seen] == list(range(20))
    assert len({ident for _, ident in seen}) == 1
    assert seen[0][1] != threading.get_ident()


def test_work_that_fails_tells_who_asks_and_the_next_is_done():
    thread, seen = DiskThread(), []

    def fail():
        raise ValueError("of no kind that was expected")

    failed = thread.start(fail)
    wait_for(thread.start(lambda: seen.append(1)))
    with pytest.raises(ValueError, match="no kind"):
        failed()
    assert seen == [1]


def test_work_is_not_done_before_it_has_ended():
    thread, gate = DiskThread(), threading.Event()
    done = thread.start(gate.wait)
    assert not done()
    gate.set()
    wait_for(done)


def test_thread_ends_with_its_owner():
    thread = DiskThread()
    found = []
    wait_for(thread.start(lambda: found.append(threading.current_thread())))
    del thread
    found[0].join(60)
    assert not found[0].is_alive()


def test_copies_of_a_disk_share_one_thread():
    files, idents = SystemFiles(), []
    for each in (files, files.share()):
        wait_for(each.start(lambda: idents.append(threading.get_ident())))
    assert len(set(idents)) == 1


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be deleted there")
def test_bytes_of_a_removed_file_are_freed_by_the_other_thread(tmp_path, monkeypatch):
    files = SystemFiles()
    file = files.open_append(f"{tmp_path}/x")
    file.append([b"abc"])
    descriptor, closed = files.handle(file).fd, {}
    close = os.close

    def noted(fd):
        closed[fd] = threading.get_ident()
        close(fd)

    monkeypatch.setattr(os, "close", noted)
    file.retire()
    files.remove(f"{tmp_path}/x")
    assert file.pread(3, 0) == b"abc"
    del file
    wait_for(files.start(lambda: None))
    assert closed.get(descriptor, threading.get_ident()) != threading.get_ident()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_few_descriptors_wait_while_the_disk_is_busy(tmp_path):
    thread, busy = DiskThread(), threading.Event()
    thread.start(busy.wait)
    made = [os.open(tmp_path / "file", os.O_CREAT | os.O_RDWR) for _ in range(3 * MOST_WAITING)]
    for fd in made:
        thread.close(fd)
    assert sum(map(is_open, made)) <= MOST_WAITING
    done = thread.start(lambda: None)
    busy.set()
    wait_for(done)
    assert not any(map(is_open, made))
