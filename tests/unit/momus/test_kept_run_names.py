"""The file that a failed test's run is kept in."""

from __future__ import annotations

import pytest

from momus.kit.kept_run import file_name


@pytest.mark.parametrize(
    ("one", "other"),
    [("t.py::test_a[x/y]", "t.py::test_a[x y]"), (f"a::{'n' * 200}", f"b::{'n' * 200}"), ("t[ä]", "t[ö]")],
)
def test_tests_with_similar_names_do_not_share_a_file(one, other):
    assert file_name(one) != file_name(other)


def test_name_of_any_test_is_one_that_every_file_system_takes():
    name = file_name("tests/test_x.py::test_" + "日本語/" * 200)
    assert len(name.encode()) <= 255
    assert "/" not in name
