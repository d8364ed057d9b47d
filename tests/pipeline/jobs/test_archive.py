"""The archive: the same rows as the logs, more as they grow, gaps where rows went before it came, one position."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer
from job_kit import parsed
from live import OFFSETS, History, Live
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from momus import Broker
from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.group_offsets import Partition
from pipeline.jobs import archive
from pipeline.jobs import offsets as offsets_job
from pipeline.jobs.archive import PositionCommitter
from pipeline.transforms import commits

CONFIG = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "log.cleaner.backoff.ms": 50,
}


def run(spark: SparkSession, data: Path, output: Path, *words: str) -> None:
    assert archive.run(spark, parsed(archive, data, output, *words)) == 0


def same(left: DataFrame, right: DataFrame) -> bool:
    """The same rows, whatever file and position they came from."""
    columns = [name for name in left.columns if name not in ("segment", "position")]
    one, other = left.select(*columns), right.select(*columns)
    return one.exceptAll(other).isEmpty() and other.exceptAll(one).isEmpty()


class Logs:
    """A data directory that only changes while this makes more history: its broker is down otherwise."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._history = History(3)
        self.more(first=True)

    def more(self, steps: int = 60, *, first: bool = False, clean: int = 0) -> None:
        """So many steps; `clean`: in small segments, and on until the logs have become smaller that many times."""
        with Broker(data_dir=self.data, config=CONFIG) as broker, closing(Live(broker)) as live:
            self._history.forget()
            if first:
                self._history.create(live)
                producer = Producer(broker.client_config("confluent"))
                for n in range(30):
                    producer.produce("a3", b"%d" % n, key=b"k", partition=n % 2, headers={"h": b"\xff"})
                assert producer.flush(30) == 0
            if clean:
                live.configure(OFFSETS, internal_segment_bytes="1500", min_cleanable_dirty_ratio="0.01")
            for _ in range(steps):
                self._history.step(live)
            size = self.size()
            while clean:
                before = size
                self._history.step(live)
                size = self.size()
                clean -= size < before

    def size(self) -> int:
        found = 0
        for path in self.data.glob(f"{OFFSETS}-*/*.log"):
            with suppress(FileNotFoundError):  # the cleaner has been faster
                found += path.stat().st_size
        return found


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path / "data")


def test_archive_holds_what_the_logs_hold_and_grows_with_them(spark, logs, tmp_path):
    data, output = logs.data, tmp_path / "archive"
    for _ in range(2):
        run(spark, data, output, "--max-bytes", "4000")
        for view in (tables.offsets, tables.transactions):
            assert same(view(spark, str(data)), view(spark, str(output)))
        logs.more()
    latest = [commits.latest(commits.effective(tables.offsets(spark, str(path)))) for path in (data, output)]
    assert latest[0].count() > latest[1].count() / 2
    run(spark, data, output)
    assert same(tables.offsets(spark, str(data)), tables.offsets(spark, str(output)))
    assert tables.coverage(spark, str(output)).where("missing").isEmpty()
    follow(spark, output, tmp_path / "history")


def follow(spark: SparkSession, source: Path, output: Path) -> None:
    """The offsets job adds up, micro-batch by micro-batch, to what it says of the whole."""
    assert offsets_job.run(spark, parsed(offsets_job, source, output, "--follow")) == 0
    found = spark.read.parquet(f"{output}/history").drop("batch")
    whole = commits.history(commits.effective(tables.offsets(spark, str(source))))
    assert same(found, whole.select(*found.columns))
    assert found.count() > 50


def test_archive_of_topics_has_their_records_as_they_are(spark, logs, tmp_path):
    data, output = logs.data, tmp_path / "archive"
    run(spark, data, output, "--topics", "a*")
    assert same(tables.raw(spark, str(data), "a*"), tables.raw(spark, str(output), "a*"))
    assert tables.raw(spark, str(output), "a*").count() == 30
    places, archived = ["log", "offset", "producer_id", "control"], ["a3", *archive.INTERNAL]
    there = tables.raw(spark, str(data)).where(F.col("topic").isin(*archived))
    assert same(there.select(*places), tables.raw(spark, str(output)).select(*places))


def test_what_went_before_the_archive_and_what_it_was_not_waited_for_are_different_gaps(spark, logs, tmp_path):
    data, output = logs.data, tmp_path / "archive"

    def reasons(path: Path) -> set[str]:
        return {row["reason"] for row in tables.coverage(spark, str(path), "offsets").where("missing").collect()}

    logs.more(clean=1)
    run(spark, data, output)
    assert reasons(output) == {"before"}
    began = tables.archive_start_offsets(str(output), "offsets")

    def is_cut() -> bool:
        gaps = tables.coverage(spark, str(data), "offsets").where("missing").collect()
        return any(gap["to_offset"] > began[gap["log"]] for gap in gaps)

    # At first the cleaner takes from what is archived already. It begins anew when its broker does, so that it only
    # gets further where it has more time than before.
    for replaced in (1, 2, 4, 8, 16, 32, 64):
        logs.more(clean=replaced)
        if is_cut():
            break
    else:
        raise AssertionError("nothing was cleaned that is not archived")
    run(spark, data, output)
    assert reasons(output) == {"before", "unwaited"}
    assert reasons(data) == {"removed"}


def test_files_of_a_micro_batch_that_was_killed_are_removed(spark, logs, tmp_path):
    data, output = logs.data, tmp_path / "archive"
    run(spark, data, output)
    kept = sorted(output.glob("offsets/*/*/*.parquet"))
    left = kept[0].with_name("part-00099-killed.c000.snappy.parquet")
    left.write_bytes(kept[0].read_bytes())
    run(spark, data, output)
    assert not left.exists()
    assert all(path.exists() for path in kept)


def test_archive_of_an_archive_is_refused(spark, tmp_path):
    (tmp_path / "archive" / "offsets").mkdir(parents=True)
    with pytest.raises(PipelineError, match="is an archive: --input must be"):
        run(spark, tmp_path / "archive", tmp_path / "other")


class Group:
    """What was committed, commit by commit."""

    def __init__(self) -> None:
        self.told: list[dict[Partition, int]] = []
        self._last: dict[Partition, int] = {}

    def commit(self, positions: dict[Partition, int]) -> int:
        moved = {where: offset for where, offset in positions.items() if self._last.get(where) != offset}
        self._last.update(moved)
        self.told.append(moved)
        return len(moved)


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ({"__consumer_offsets-0": 12, "__consumer_offsets-1": 5}, False),  # the two records of the commit itself
        ({"__consumer_offsets-0": 13, "__consumer_offsets-1": 5}, True),
        ({"__consumer_offsets-0": 12, "__consumer_offsets-1": 6}, True),
        ({"__consumer_offsets-0": 10, "__consumer_offsets-1": 5}, False),
        ({"__consumer_offsets-0": 10, "__consumer_offsets-1": 5, "t-0": 2}, True),
    ],
)
def test_position_is_told_when_more_has_moved_than_the_telling_of_it(step, told):
    group = Group()
    position = PositionCommitter(group)
    position.update({"__consumer_offsets-0": 10, "__consumer_offsets-1": 5})
    assert group.told == [{("__consumer_offsets", 0, None): 10, ("__consumer_offsets", 1, None): 5}]
    position.update(step)
    assert len(group.told) == 1 + told


def test_position_that_could_not_be_told_is_told_again():
    class Deaf(Group):
        def commit(self, positions: dict[Partition, int]) -> int:
            super().commit(positions)
            return 0 if len(self.told) == 1 else len(positions)

    group = Deaf()
    position = PositionCommitter(group)

    for _ in range(3):
        position.update({"t-0": 4})
    assert len(group.told) == 2
