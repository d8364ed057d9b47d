"""The wheel, installed in the ways people install: its generic package names stay out of everybody's way."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]

# A project with folders of its own under the same names, none of them a regular package: these lose to any
# regular package found anywhere on sys.path.
PROJECT = {
    "storage/mine.py": "WHOSE = 'the project'\n",
    "protocol/mine.py": "WHOSE = 'the project'\n",
    "broker.py": "WHOSE = 'the project'\n",
    "check.py": """
import socket, sys
import broker, protocol.mine, storage.mine
from momus import Broker
from momus.kit import process
assert not process.__file__.startswith(sys.argv[1]), process.__file__
with Broker(log_level="info") as kafka:
    host, port = kafka.bootstrap_servers.split(":")
    socket.create_connection((host, int(port))).close()
import importlib.util
for name in ("broker", "protocol.mine", "storage.mine"):
    assert importlib.import_module(name).WHOSE == "the project", name
assert importlib.util.find_spec("pipeline") is None
print("served")
""",
}


def run(*command: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, capture_output=True, text=True, env=clean | (env or {}), cwd=cwd, timeout=500)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def pip(python: str, *arguments: str, env: dict[str, str] | None = None) -> str:
    return run(sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *arguments, env=env)


@pytest.fixture(scope="module")
def wheelhouse(tmp_path_factory, worker_id) -> Path:
    """A folder with the wheel, built from the source distribution."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "wheelhouse"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whichever worker comes first makes it for all
        if not (folder / "complete").exists():
            run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(REPOSITORY))
            (folder / "complete").touch()
    return folder


@pytest.fixture(scope="module")
def full_wheelhouse(wheelhouse) -> Path:
    """The same with wheels of all that it needs: nothing may need a compiler."""
    with open(wheelhouse / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (wheelhouse / "full").exists():
            (wheel,) = wheelhouse.glob("momus-*.whl")
            pip(sys.executable, "download", "-q", "--only-binary", ":all:", "-d", str(wheelhouse), str(wheel))
            (wheelhouse / "full").touch()
    return wheelhouse


@pytest.fixture
def project(tmp_path) -> Path:
    folder = tmp_path / "project"
    for name, text in PROJECT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def bare_python(tmp_path) -> str:
    """The interpreter outside every virtual environment, where `--user` means something."""
    return os.path.realpath(sys._base_executable)


def install(python: str, wheelhouse: Path, *arguments: str, env: dict[str, str] | None = None) -> None:
    offline = ("-q", "--no-index", "--find-links", str(wheelhouse), "--no-warn-script-location")
    pip(python, "install", *offline, *arguments, "momus", env=env)


def check(python: str, project: Path, env: dict[str, str] | None = None) -> None:
    assert run(python, "check.py", str(REPOSITORY), cwd=project, env=env).strip() == "served"


def test_wheel_holds_the_packages_off_the_path_and_no_tests(wheelhouse):
    (wheel,) = wheelhouse.glob("momus-*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")  # compiled ones are asked for: tools/wheels.py
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith((".so", ".pyd")) or "COMPILED" in name]
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"momus"}
    for package in ("broker", "protocol", "storage"):
        assert f"momus/_packages/{package}/__init__.py" in names
    assert not [name for name in names if "test" in name.lower() and "pytest_plugin" not in name]


@pytest.mark.slow
def test_wheel_in_a_clean_environment_serves(full_wheelhouse, project, tmp_path):
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"))
    python = str(tmp_path / "venv" / "bin" / "python")
    install(python, full_wheelhouse)
    check(python, project)
    assert run(str(tmp_path / "venv" / "bin" / "momus"), "--version").startswith("momus ")


@pytest.mark.slow
def test_wheel_installed_for_the_user_serves(full_wheelhouse, project, bare_python, tmp_path):
    env = {"PYTHONUSERBASE": str(tmp_path / "user"), "PIP_BREAK_SYSTEM_PACKAGES": "1"}
    install(bare_python, full_wheelhouse, "--user", "--ignore-installed", env=env)
    check(bare_python, project, env)


@pytest.mark.slow
def test_wheel_installed_into_a_target_folder_serves(full_wheelhouse, project, bare_python, tmp_path):
    target = tmp_path / "vendored"
    install(bare_python, full_wheelhouse, "--target", str(target))
    check(bare_python, project, {"PYTHONPATH": str(target)})


def test_wheel_holds_the_page_and_grows_little_by_it(wheelhouse):
    (wheel,) = wheelhouse.glob("momus-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        page = {each.filename: each for each in archive.infolist() if "/broker/shell/page/" in each.filename}
    static = REPOSITORY / "broker" / "shell" / "page" / "static"
    names = {name.rpartition("/static/")[2] for name in page if "/static/" in name}
    assert names == {path.name for path in static.iterdir()}
    assert sum(each.compress_size for each in page.values()) < 150_000
    assert not any(word in name for name in page for word in ("axe", "playwright", ".png"))
