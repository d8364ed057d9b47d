"""Where a log was synced to: an unsynced tail with holes is cut there, and damage of what was synced is an error."""

from __future__ import annotations

import errno

import pytest
from log_kit import DIRECTORY, ONE_SEGMENT, content, durable_env, put
from synced_ends_kit import PATH, TOPIC

from protocol.record_batch import iter_batches
from storage.files.env import Env
from storage.files.errors import StorageError
from storage.files.sim_env import sim_env
from storage.log.log import Log
from storage.log.synced_ends import SyncedEndsOfLogs
from storage.segments.synced_ends import SyncedEnds

SEGMENT = f"{DIRECTORY}/{0:020d}.log"


def opened_log(env: Env, **more: object) -> tuple[Log, SyncedEndsOfLogs]:
    """A log whose synced end is noted."""
    ends = SyncedEndsOfLogs(env.files, "/data", is_kept=True)
    ends.open(has_logs=env.files.exists(DIRECTORY))
    before = ends.before(TOPIC, 0, 0)
    log = Log.open(env, DIRECTORY, ONE_SEGMENT, topic_id=TOPIC, synced_end=before, mark=ends.mark(TOPIC, 0), **more)
    return log, ends


def written(synced: int, more: int) -> tuple[Env, list[int]]:
    """A disk with so many synced batches of 100 bytes and more, then others in one write. Where each batch begins."""
    env = durable_env()
    log, _ = opened_log(env)
    for count in (synced, more):
        for n in range(count):
            put(log, (b"key%d" % n, b"v" * 60))
        log.flush()
        if count == synced:
            log.sync()
    return env, [position for position, _ in iter_batches(env.files.read_file(SEGMENT))]


def changed(env: Env, path: str, position: int, data: bytes) -> Env:
    """The same disk with other bytes in one place, after kill -9."""
    files = env.files.crash()
    whole = bytearray(files.read_file(path))
    whole[position : position + len(data)] = data
    files.write_file_atomic(path, bytes(whole))
    return sim_env(files=files)


# -- logs


@pytest.mark.parametrize("broken", [3, 4, 5])
def test_hole_in_what_was_not_synced_is_cut_though_whole_batches_follow(broken):
    env, positions = written(3, 4)
    log, _ = opened_log(changed(env, SEGMENT, positions[broken], bytes(50)))
    assert log.end_offset == broken
    assert log.report.position == positions[broken]
    assert content(log) == env.files.read_file(SEGMENT)[: positions[broken]]


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_hole_in_what_was_synced_is_damage_and_changes_nothing(broken):
    env, positions = written(3, 4)
    wrong = changed(env, SEGMENT, positions[broken], bytes(50))
    with pytest.raises(StorageError, match=f"is damaged at position {positions[broken]}.*below offset 3 was synced"):
        opened_log(wrong)
    assert len(wrong.files.read_file(SEGMENT)) == len(env.files.read_file(SEGMENT))


def test_synced_batch_that_is_cut_short_is_damage_though_nothing_follows():
    env, _ = written(3, 0)
    files = env.files.crash()
    files.write_file_atomic(SEGMENT, files.read_file(SEGMENT)[:-1])
    with pytest.raises(StorageError, match="below offset 3 was synced"):
        opened_log(sim_env(files=files))


def test_hole_is_damage_where_it_is_unknown_how_far_the_log_was_synced():
    env, positions = written(3, 4)
    wrong = changed(env, SEGMENT, positions[4], bytes(50))
    wrong.files.remove(PATH)
    with pytest.raises(StorageError, match="a whole batch follows"):
        opened_log(wrong)


@pytest.mark.parametrize(("broken", "is_cut"), [(2, False), (4, True)])
def test_base_offset_that_is_lost_is_no_damage_in_what_was_not_synced(broken, is_cut):
    """A page may end within it, and the CRC does not cover it."""
    env, positions = written(3, 4)
    wrong = changed(env, SEGMENT, positions[broken], bytes(8))
    if is_cut:
        assert opened_log(wrong)[0].end_offset == broken
    else:
        with pytest.raises(StorageError, match="offsets 0 to 0 come after 1"):
            opened_log(wrong)


def test_gap_in_what_was_not_synced_is_cut_in_a_log_without_gaps():
    env, positions = written(3, 4)
    wrong = changed(env, SEGMENT, positions[-1], (1 << 24).to_bytes(8, "big"))
    assert opened_log(wrong, may_have_gaps=False)[0].end_offset == 6


def test_batch_that_is_lost_where_a_later_segment_follows_is_damage():
    """A segment is synced before the next one is written to, whatever the mark says."""
    env = durable_env()
    log, _ = opened_log(env)
    put(log, (b"k", b"v" * 60))
    put(log, (b"k", b"v" * 60))
    log.flush()
    log.roll()
    put(log)
    log.flush()
    position = [position for position, _ in iter_batches(env.files.read_file(SEGMENT))][1]
    with pytest.raises(StorageError, match="a later segment exists"):
        opened_log(changed(env, SEGMENT, position, bytes(50)))


def test_cut_log_forgets_what_was_synced_after_the_cut():
    env, positions = written(3, 4)
    log, _ = opened_log(sim_env(files=env.files.crash()))
    log.sync()
    log.cut_back(2)
    for _ in range(4):
        put(log, (b"key0", b"w" * 60))
    log.flush()
    again, _ = opened_log(changed(log.env, SEGMENT, positions[3], bytes(50)))
    assert again.end_offset == 3


def test_cut_fails_where_the_mark_cannot_be_lowered():
    env, _ = written(3, 0)
    log, _ = opened_log(sim_env(files=env.files.crash()))
    log.env.files.inject(1, kinds=("cell",), error=errno.EIO)
    with pytest.raises(StorageError, match="could not be cut back to offset 1"):
        log.cut_back(1)
    assert opened_log(sim_env(files=log.env.files.crash()))[0].end_offset == 3


def test_sync_that_began_before_a_cut_says_nothing_after_it():
    log, _ = opened_log(durable_env())
    for _ in range(4):
        put(log)
    log.flush()
    cut = log._sync_files

    def sync_files(end_offset: int) -> None:
        cut(end_offset)
        log.cut_back(1)

    log._sync_files = sync_files
    log.sync()
    assert SyncedEnds.load(log.env.files, PATH).end_of((TOPIC, 0)) == 0


def test_mark_leaves_out_what_is_written_during_the_sync():
    log, _ = opened_log(durable_env())
    put(log)
    log.flush()
    sync_files = log._sync_files

    def slow(end_offset: int) -> None:
        sync_files(end_offset)
        put(log)
        log.flush()

    log._sync_files = slow
    assert log.sync() == 1
    assert SyncedEnds.load(log.env.files, PATH).end_of((TOPIC, 0)) == 1


def test_sync_goes_on_where_the_mark_cannot_be_written():
    log, _ = opened_log(durable_env())
    put(log)
    log.flush()
    log.env.files.inject(1, kinds=("cell",), error=errno.EIO)
    assert log.sync() == 1
    assert SyncedEnds.load(log.env.files, PATH).end_of((TOPIC, 0)) == 0


def test_log_that_ends_before_what_was_synced_opens_and_is_marked_so():
    """It was cut by hand, as the error for a damaged one says."""
    env, positions = written(3, 4)
    files = env.files.crash()
    files.write_file_atomic(SEGMENT, files.read_file(SEGMENT)[: positions[1]])
    log, _ = opened_log(sim_env(files=files))
    assert log.end_offset == 1
    assert SyncedEnds.load(files, PATH).end_of((TOPIC, 0)) == 1


def test_reopened_log_is_cut_at_what_was_durable_though_whole_batches_follow():
    env, positions = written(3, 4)
    log, _ = opened_log(sim_env(files=env.files.crash()))
    inode = log.env.files._find(SEGMENT)
    inode.data[positions[4] : positions[4] + 50] = bytes(50)
    log.give_up("was given up")
    log.reopen(3)
    assert log.end_offset == 3
