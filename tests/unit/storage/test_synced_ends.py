"""Where a log was synced to: an unsynced tail with holes is cut there, and damage of what was synced is an error."""

from __future__ import annotations

import errno

import pytest
from log_kit import DIRECTORY, ONE_SEGMENT, content, durable_env, put

from broker.cluster.data.copies import copy_directory
from protocol.record_batch import iter_batches
from storage.files.env import Env, system_env
from storage.files.errors import StorageError
from storage.files.sim_env import MemoryFiles, sim_env
from storage.log.log import Log
from storage.log.synced_ends import SyncedEndsOfLogs
from storage.segments.synced_ends import FILE_NAME, MAGIC, NO_TOPIC, SLOT_BYTES, UNKNOWN, SyncedEnds

TOPIC, OTHER = b"t" * 16, b"u" * 16
PATH = f"/data/{FILE_NAME}"
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


# -- the file


def ends_in(files: MemoryFiles) -> SyncedEnds:
    loaded = SyncedEnds.load(files, PATH)
    assert loaded is not None
    return loaded


def created(*older: tuple[bytes, int]) -> MemoryFiles:
    files = durable_env().files
    SyncedEnds.create(files, PATH, dict.fromkeys(older, UNKNOWN))
    return files


def test_file_says_what_was_noted_after_it_is_loaded_again():
    files = created()
    ends = ends_in(files)
    ends.mark((TOPIC, 0)).note(7, 0)
    ends.mark((TOPIC, 1)).note(1 << 40, 0)
    ends.mark((NO_TOPIC, 0)).note(3, 0)
    again = ends_in(files)
    assert [again.end_of(key) for key in ((TOPIC, 0), (TOPIC, 1), (NO_TOPIC, 0), (OTHER, 0))] == [7, 1 << 40, 3, 0]
    assert len(files.read_file(PATH)) == len(MAGIC) + 3 * SLOT_BYTES


def test_log_that_is_older_than_the_file_is_unknown_until_it_is_synced():
    files = created((TOPIC, 0), (TOPIC, 1))
    ends = ends_in(files)
    ends.mark((TOPIC, 1)).note(5, 0)
    assert [ends_in(files).end_of((TOPIC, index)) for index in range(3)] == [None, 5, 0]


def test_torn_slot_says_nothing_and_others_stay():
    files = created()
    ends = ends_in(files)
    for index in range(3):
        ends.mark((TOPIC, index)).note(9, 0)
    files._find(PATH).data[len(MAGIC) + SLOT_BYTES + 24] ^= 1
    again = ends_in(files)
    assert [again.end_of((TOPIC, index)) for index in range(3)] == [9, 0, 9]
    again.mark((OTHER, 0)).note(4, 0)  # takes the place of the torn one
    assert ends_in(files).end_of((OTHER, 0)) == 4
    assert len(files.read_file(PATH)) == len(MAGIC) + 3 * SLOT_BYTES


def test_slot_of_a_deleted_log_is_given_to_another():
    files = created()
    ends = ends_in(files)
    ends.mark((TOPIC, 0)).note(9, 0)
    ends.forget((TOPIC, 0))
    ends.mark((OTHER, 0)).note(2, 0)
    assert (ends_in(files).end_of((TOPIC, 0)), ends_in(files).end_of((OTHER, 0))) == (0, 2)
    assert len(files.read_file(PATH)) == len(MAGIC) + SLOT_BYTES


def test_logs_of_topics_that_are_gone_are_forgotten_but_not_the_metadata():
    files = created()
    ends = ends_in(files)
    for key in ((TOPIC, 0), (OTHER, 0), (NO_TOPIC, 0)):
        ends.mark(key).note(5, 0)
    ends.keep({OTHER})
    ends.mark((b"n" * 16, 0)).note(1, 0)
    assert [ends_in(files).end_of(key) for key in ((TOPIC, 0), (OTHER, 0), (NO_TOPIC, 0))] == [0, 5, 5]


@pytest.mark.parametrize("data", [b"", b"momusSY9".ljust(64, b"\0")])
def test_file_of_another_version_is_none(data):
    files = durable_env().files
    files.write_file_atomic(PATH, data)
    assert SyncedEnds.load(files, PATH) is None


def test_loss_of_power_leaves_an_older_mark_and_lowered_ones_stay():
    files = created()
    mark = ends_in(files).mark((TOPIC, 0))
    mark.note(9, 0)
    mark.cut(4)
    mark.note(8, 1)
    assert ends_in(files.crash(lose_unsynced=True)).end_of((TOPIC, 0)) == 4
    assert ends_in(files.crash()).end_of((TOPIC, 0)) == 8


def test_file_is_written_in_place_on_the_real_disk(tmp_path):
    files, path = system_env().files, str(tmp_path / FILE_NAME)
    ends = SyncedEnds.create(files, path, {(OTHER, 2): UNKNOWN})
    mark = ends.mark((TOPIC, 0))
    mark.note(9, 0)
    mark.cut(4)
    mark.note(6, 1)
    assert SyncedEnds.load(files, path).end_of((TOPIC, 0)) == 6
    ends.close()
    mark.note(7, 1)  # a sync that ends after the file is closed says nothing
    again = SyncedEnds.load(files, path)
    assert (again.end_of((TOPIC, 0)), again.end_of((OTHER, 2))) == (6, None)
    again.close()
    again.close()


# -- the data directory's


def directory_ends(files: MemoryFiles, *, is_kept: bool, has_logs: bool = True) -> SyncedEndsOfLogs:
    ends = SyncedEndsOfLogs(files, "/data", is_kept=is_kept)
    ends.open(has_logs=has_logs)
    return ends


def test_process_that_syncs_nothing_reads_the_file_and_removes_it():
    files = created()
    ends_in(files).mark((TOPIC, 0)).note(7, 0)
    ends = directory_ends(files, is_kept=False)
    assert (ends.before(TOPIC, 0, 0), ends.before(OTHER, 0, 3)) == (7, 3)
    assert ends.mark(TOPIC, 0) is None
    assert not files.crash(lose_unsynced=True).exists(PATH)
    ends.begin([TOPIC], [], [])
    assert not files.exists(PATH)


def test_recovery_point_counts_where_it_is_later_than_the_mark():
    files = created()
    ends_in(files).mark((TOPIC, 0)).note(7, 0)
    ends = directory_ends(files, is_kept=True)
    assert (ends.before(TOPIC, 0, 3), ends.before(TOPIC, 0, 9)) == (7, 9)


def test_older_directory_gets_the_file_when_its_topics_are_known():
    env = durable_env()
    ends = directory_ends(env.files, is_kept=True)
    assert not env.files.exists(PATH)
    assert ends.before(TOPIC, 0, 5) is None
    log = Log.open(env, "/data/__cluster_metadata-0")
    ends.begin([TOPIC], [(TOPIC, 0)], [log])
    put(log)
    log.flush()
    log.sync()
    after = directory_ends(env.files.crash(), is_kept=True)
    assert [after.before(key, 0, 0) for key in (None, TOPIC, OTHER)] == [1, None, 0]


def test_copy_knows_what_is_known_here():
    env = durable_env()
    ends = SyncedEndsOfLogs(env.files, "/data", is_kept=True)
    ends.open(has_logs=True)
    ends.begin([TOPIC, OTHER], [(TOPIC, 0), (OTHER, 0)], [])
    ends.mark(TOPIC, 0).note(7, 0)
    target = sim_env().files
    copy_directory(env.files, "/data", target, "/data", sync=True)
    ends.mark(TOPIC, 0).note(9, 0)
    there = directory_ends(target.crash(lose_unsynced=True), is_kept=True)
    assert [there.before(TOPIC, 0, 0), there.before(OTHER, 0, 0), there.before(OTHER, 1, 0)] == [7, None, 0]


def test_log_that_was_unknown_is_known_for_good_once_it_is_open():
    files = created((TOPIC, 0), (OTHER, 0), (TOPIC, 1))
    for key, synced in (((TOPIC, 0), 5), ((OTHER, 0), 0), ((TOPIC, 1), 3)):
        mark = ends_in(files).mark(key)
        if key[1]:
            mark.note(synced, 0)  # an opened log is synced before
        mark.opened(synced)
    after = ends_in(files.crash(lose_unsynced=True))
    assert (after.end_of((TOPIC, 0)), after.end_of((OTHER, 0)), after.end_of((TOPIC, 1))) == (5, 0, 3)
