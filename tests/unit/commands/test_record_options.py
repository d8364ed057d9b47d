"""Options of `momus produce` and `momus consume` of which one would leave the other without effect: refused."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from momus.records.commands import _records, consume, produce


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        (produce, ["--json", "-k", "a"], "--json or --key, not both"),
        (produce, ["--json", "-K", ":"], "--json or --key-delimiter, not both"),
        (produce, ["--json", "-Z"], "--json or --null, not both"),
        (produce, ["-k", "a", "-K", ":"], "--key or --key-delimiter, not both"),
        (produce, ["-v", "x", __file__], "--value or FILE, not both"),
        (consume, ["--json", "-K", ":"], "--json or --key-delimiter, not both"),
        (consume, ["-f", "%s", "-K", ":"], "--format or --key-delimiter, not both"),
        (consume, ["-f", "%s", "-Z"], "--format or --null, not both"),
    ],
)
def test_options_that_exclude_each_other_are_refused_before_anything_is_asked(command, words, said):
    done = CliRunner().invoke(command, ["-t", "orders", "-b", "127.0.0.1:1", *words])
    assert done.exit_code == 2, done.output
    assert said in done.output


def test_a_records_own_time_counts_also_where_it_is_zero():
    lines = ('{"value": "x", "timestamp_ms": 0}', '{"value": "x"}')
    records = _records((), None, None, r"\n", (), False, "5", True, lines)
    assert [record.timestamp_ms for record in records] == [0, 5]
