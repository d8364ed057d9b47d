"""The file of synced ends: its slots, what it says after losses, and the one of a data directory."""

from __future__ import annotations

import pytest
from log_kit import durable_env, put
from synced_ends_kit import OTHER, PATH, TOPIC

from broker.cluster.data.copies import copy_directory
from storage.files.env import system_env
from storage.files.sim_env import MemoryFiles, sim_env
from storage.log.log import Log
from storage.log.synced_ends import SyncedEndsOfLogs
from storage.segments.synced_ends import FILE_NAME, MAGIC, NO_TOPIC, SLOT_BYTES, UNKNOWN, SyncedEnds

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
