"""What `momus --version` says of the build, by the files that lie beside the packages."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES

import pytest
from momus_command import run_momus

from momus import __version__, launch


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The packages of a compiled wheel, as far as they are looked at; the extension is another interpreter's."""
    monkeypatch.setattr(launch, "packages_folder", lambda: str(tmp_path))
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "broker.py").touch()
    (tmp_path / "broker" / "broker.cpython-35m-x86_64-linux-gnu.so").touch()
    (tmp_path / "COMPILED").write_text("mypyc 9.8.7\n")
    return tmp_path


def test_version_of_extensions_for_another_interpreter_is_pure(folder):
    assert run_momus("--version").stdout == f"momus {__version__} (pure Python)\n"


def test_version_of_extensions_for_this_interpreter_names_mypyc(folder):
    (folder / "broker" / f"broker{EXTENSION_SUFFIXES[0]}").touch()
    assert run_momus("--version").stdout == f"momus {__version__} (compiled by mypyc 9.8.7)\n"
