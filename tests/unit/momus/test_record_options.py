"""Options of `momus produce` and `momus consume` of which one would leave the other without effect: refused."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from momus.cli.records.commands import _records, consume, produce


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        (produce, ["--json", "-k", "a"], "--json or --key, not both"),
        (produce, ["--json", "-K", ":"], "--json or --key-delimiter, not both"),
        (produce, ["--json", "-Z"], "--json or --null, not both"),
        (produce, ["-k", "a", "-K", ":"], "--key or --key-delimiter, not both"),
        (produce, ["-v", "x", __file__], "--value or FILE, not both"),
        (produce, ["-D", ";", "-v", "x"], "--value or --delimiter, not both"),
        (produce, ["-D", ";", __file__], "FILE or --delimiter, not both"),
        (consume, ["--json", "-D", ";"], "--json or --delimiter, not both"),
        (consume, ["-f", "%s", "-D", ";"], "--format or --delimiter, not both"),
        (consume, ["--json", "-K", ":"], "--json or --key-delimiter, not both"),
        (consume, ["-f", "%s", "-K", ":"], "--format or --key-delimiter, not both"),
        (consume, ["-f", "%s", "-Z"], "--format or --null, not both"),
    ],
)
def test_options_that_exclude_each_other_are_refused_before_anything_is_asked(command, words, said):
    done = CliRunner().invoke(command, ["-t", "orders", "-b", "127.0.0.1:1", *words])
    assert done.exit_code == 2, done.output
    assert said in done.output


@pytest.mark.parametrize(("given", "times"), [(None, [0, None]), ("5", [5, 5])])
def test_time_of_the_command_line_comes_before_that_of_a_line(given, times):
    lines = ('{"value": "x", "timestamp_ms": 0}', '{"value": "x"}')
    records = _records((), None, None, None, (), False, given, True, lines)
    assert [record.timestamp_ms for record in records] == times


@pytest.mark.parametrize("option", ["delimiter", "key_delimiter"])
def test_empty_delimiter_is_refused(option):
    words = {"key_delimiter": None, "delimiter": None, option: ""}
    with pytest.raises(click.UsageError, match=f"--{option.replace('_', '-')} is empty"):
        list(_records((), None, headers=(), empty_is_null=False, timestamp=None, as_json=False, values=(), **words))
