"""A job that adds to a table of Delta Lake, killed at work again and again: it replaces what it had written."""

from __future__ import annotations

from contextlib import closing

import pytest
from job_kit import run
from killed_job import KilledJob
from live import Live
from test_follow_killed import CONFIG, Clients, rows_of

from momus import Broker
from pipeline import tables
from pipeline.jobs import offsets
from pipeline.transforms import commits

KILLS = 6
WORDS = ("--format", "delta", "--max-bytes", "20000")


@pytest.mark.long  # a Spark with Delta Lake starts seven times
@pytest.mark.timeout(2400)
def test_history_in_delta_of_a_job_that_was_killed_has_every_change_once(spark, tmp_path):
    data = tmp_path / "data"
    job = KilledJob("offsets", data, tmp_path, 5, *WORDS)
    with Broker(data_dir=data, config=CONFIG) as broker, closing(Live(broker)) as live:
        clients = Clients(live, 5)
        with closing(job.lives(KILLS, is_stopped=False)) as lives:
            for _ in lives:
                clients.step()
        clients.end()
    assert job.in_the_middle, "nothing was killed at work: this test shows nothing"
    assert run(offsets, spark, data, job.output, "--follow", *WORDS) == 0
    whole = commits.history(commits.effective(tables.offsets(spark, str(data))))
    found = rows_of(spark.read.format("delta").load(f"{job.output}/history").select(*whole.columns))
    assert found == rows_of(whole)
    assert len(found) > 200
    assert not list(job.output.glob("_state/batch=*/*/_delta_log"))
