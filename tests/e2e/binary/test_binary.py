"""The binary where there is no Python: an empty root with glibc alone, another user, read-only, a path with blanks.

It takes minutes to build: these tests are slow, and take what `make binary` has left in dist. They need root. The glibc
is that of this machine, or one in the folder that MOMUS_GLIBC names, beside a C++ library that runs with it.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from momus import __version__
from momus.control import Control

REPOSITORY = Path(__file__).parents[3]
DIST = Path(os.environ.get("MOMUS_DIST", REPOSITORY / "dist"))
ARCHIVE = DIST / f"momus-{__version__}-linux-{platform.machine()}.tar.gz"
PLACE = "/opt/a path with blanks"
USER = 12345  # no user of the machine has it
LIBRARIES = Path(os.environ.get("MOMUS_GLIBC", "/lib/x86_64-linux-gnu"))
OF_CXX = ["libstdc++.so.6", "libgcc_s.so.1"]  # the binary has its own, for a glibc as new as theirs
GLIBC = [
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not ARCHIVE.exists(), reason="no binary in dist: make binary"),
    pytest.mark.skipif(os.geteuid() != 0 or platform.machine() != "x86_64", reason="chroot needs root"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty root with glibc and the binary, both read-only; /tmp can be written."""
    root = tmp_path_factory.mktemp("root")
    (root / "lib64").mkdir()
    (root / "lib").mkdir()
    (root / "lib" / "x86_64-linux-gnu").symlink_to("../lib64")  # where Red Hat's loader looks, and where Debian's does
    for name in [*GLIBC, *(OF_CXX if "MOMUS_GLIBC" in os.environ else [])]:
        shutil.copy2(os.path.realpath(LIBRARIES / name), root / "lib64" / name)
    place = root / PLACE.lstrip("/")
    place.mkdir(parents=True)
    with tarfile.open(ARCHIVE) as file:
        file.extractall(place, filter="data")
    (place / ARCHIVE.name.removesuffix(".tar.gz")).rename(place / "momus")
    for name in ("tmp", "proc", "dev"):
        (root / name).mkdir()
    (root / "tmp").chmod(0o1777)
    root.chmod(0o755)
    before = {path: path.lstat().st_mtime_ns for path in place.rglob("*")}
    yield root
    assert {path: path.lstat().st_mtime_ns for path in place.rglob("*")} == before, "it has written beside itself"


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(root: Path) -> Iterator[Start]:
    """Starts the binary in the root as another user, with the whole root read-only but for /tmp."""
    running: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        mounts = (
            f"mount --bind {root} {root} && mount -o remount,ro,bind {root}"
            f" && mount -t tmpfs -o mode=1777 tmpfs {root}/tmp"
            f' && mount -t proc proc {root}/proc && mount --bind /dev {root}/dev && exec "$@"'
        )
        chroot = ["chroot", f"--userspec={USER}:{USER}", str(root), f"{PLACE}/momus/momus", *words]
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", mounts, "sh", *chroot],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": "/nonsense", "PYTHONHOME": "/nonsense"},
        )
        running.append(process)
        return process

    yield begin
    for each in running:
        each.terminate()
        each.communicate(timeout=60)


def said(process: subprocess.Popen[str], wanted: str) -> str:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(wanted):
            return line.removeprefix(wanted).strip()
    raise AssertionError("".join(lines))


def test_version_is_told_and_that_it_is_compiled(start):
    process = start("--version")
    assert said(process, f"momus {__version__} ").startswith("(compiled by mypyc ")
    assert process.wait(60) == 0


def test_binary_runs_one_command_of_a_kind(root):
    table, folder = REPOSITORY / "tests" / "installed", root / PLACE.lstrip("/") / "momus"
    done = subprocess.run([sys.executable, table, folder, "--bare", "one of a kind"], capture_output=True, text=True)
    assert done.stdout.rstrip().endswith("22 passed, 0 failed"), done.stdout + done.stderr


def test_glibc_of_rhel_9_is_new_enough(root):
    text = (root / PLACE.lstrip("/") / "momus" / "GLIBC").read_text(encoding="utf-8")
    major, minor = text.split()[1].split(".")
    assert (int(major), int(minor)) <= (2, 34), text


def test_broker_serves_tls_sasl_page_registry_and_metrics(start, tmp_path):
    process = start("kit", "--security", "sasl_ssl", "--user", "alice:secret", "--registry", "127.0.0.1:0", "--ui")
    address = said(process, "momus ready ")
    control = Control(said(process, "momus control "))
    found = control.ask("GET", "/_admin/security?client=confluent")
    assert isinstance(found, dict)
    assert found["settings"]["bootstrap.servers"] == address
    assert found["files"]
    assert "<title>" in control.read("/ui")
    assert control.read("/metrics").startswith("# HELP")
    registry = control.ask("POST", "/_admin/registry", {})
    assert isinstance(registry, dict)
    for kind, schema in {
        "AVRO": '"int"',
        "PROTOBUF": 'syntax = "proto3"; message A { int32 a = 1; }',
        "JSON": '{"type": "object"}',
    }.items():
        url = f"{registry['url']}/subjects/{kind}/versions"
        body = json.dumps({"schemaType": kind, "schema": schema})
        words = ["-sSk", "-u", "alice:secret", "-H", "Content-Type: application/json", "-d", body, url]
        done = subprocess.run(["curl", *words], capture_output=True, text=True, timeout=60, check=True)
        assert "id" in json.loads(done.stdout), (kind, done.stdout)
    producer = (
        "import base64, json, sys; from confluent_kafka import Producer; s = json.loads(sys.argv[1]); p = Producer(s);"
        " p.produce('orders', b'x'); assert p.flush(30) == 0"
    )
    for name, data in found["files"].items():
        (tmp_path / name).write_bytes(base64.b64decode(data))
    settings = {key: value.replace("{folder}", str(tmp_path)) for key, value in found["settings"].items()}
    subprocess.run([sys.executable, "-c", producer, json.dumps(settings)], timeout=120, check=True)
    answer = control.ask("POST", "/_admin/topics/orders/consume", {"least": 1, "timeout_ms": 10000})
    assert isinstance(answer, dict)
    assert answer["met"]


def test_file_in_yaml_is_loaded_and_traces_are_sent(start, root):
    process = start("kit", "--otel", "http://127.0.0.1:9")
    said(process, "momus ready ")
    control = Control(said(process, "momus control "))
    text = "topics:\n- name: orders\n  records:\n  - value: one coffee\n"
    loaded = control.ask("POST", "/_admin/load", {"files": {"a.yaml": text}})
    assert isinstance(loaded, dict)
    assert loaded["loaded"]["topics"] == 1


def test_pipeline_is_told_to_be_absent_in_words(start):
    process = start("pipeline", "lag")
    assert process.stdout is not None
    told = process.stdout.read()
    assert process.wait(60) == 1
    assert "pipeline" in told
    assert "Traceback" not in told
