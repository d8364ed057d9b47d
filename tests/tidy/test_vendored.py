"""What others have written is in the lists of licences that a release makes."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("vendored", ROOT / "tools" / "vendored.py")
assert SPEC is not None
assert SPEC.loader is not None
vendored = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(vendored)


def test_licence_of_the_charts_is_added_to_both_lists_of_a_release(tmp_path):
    licences, sbom = tmp_path / "LICENSES.txt", tmp_path / "sbom.json"
    licences.write_text("click\n8.1\nBSD\n")
    sbom.write_text(json.dumps({"bomFormat": "CycloneDX", "components": [{"name": "click"}]}))
    vendored.add(ROOT, licences, sbom)
    text = licences.read_text()
    assert text.startswith("click\n8.1\nBSD\n\nuPlot\n1.6.32\nMIT License\n")
    assert "Copyright (c) 2022 Leon Sorokin" in text
    assert 'THE SOFTWARE IS PROVIDED "AS IS"' in text
    assert "*/" not in text
    found = json.loads(sbom.read_text())["components"]
    assert [each["name"] for each in found] == ["click", "uPlot"]
    assert found[1]["version"] == "1.6.32"
    assert found[1]["licenses"][0]["license"]["name"] == "MIT License"


def test_release_adds_them_to_what_it_lists():
    text = (ROOT / "tools" / "release.py").read_text()
    body = re.search(r"^def make_lists\(.*?(?=^def )", text, re.DOTALL | re.MULTILINE)
    assert body is not None
    assert body[0].rstrip().endswith('vendored.add(REPOSITORY, folder / "LICENSES.txt", folder / "sbom.json")')


def test_file_with_a_licence_that_does_not_say_whose_is_named(tmp_path):
    for package in vendored.PACKAGES:
        (tmp_path / package).mkdir()
    (tmp_path / "broker" / "grid.js").write_text("// Copyright (c) 2020 A. N. Author\nlet x;\n")
    with pytest.raises(ValueError, match=r"broker/grid\.js has a licence in it"):
        list(vendored.find(tmp_path))


def test_script_without_a_copyright_is_as_large_as_ours_are():
    """A minified library without its licence would be one line of many thousand characters."""
    theirs = {each.path for each in vendored.find(ROOT)}
    for path in (ROOT / "broker" / "shell" / "page" / "static").glob("*.js"):
        if path not in theirs:
            assert max(map(len, path.read_text().splitlines())) < 700, path
