"""A Docker Engine for the tests of the image: the one that answers, or Debian's, installed and started here as root.

Also what the build needs where there is no registry of images: a base image made of Debian packages in place of
python:3.11-slim, with this machine's certificates and settings of pip. The Dockerfile takes it by --build-arg BASE. It
has a name of its own, so that nobody's python:3.11-slim is replaced.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

PULLED = "python:3.11-slim"
MADE = "momus-test/debian-python:3.11"
PACKAGES = ("docker.io", "iptables")
COMPOSE = Path(__file__).parents[3] / "build" / "docker-compose"  # compose v2, where the system has none
START_LIMIT_S = 120
BASE = """\
FROM {imported}
ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
RUN ln -sf /usr/bin/python3 /usr/local/bin/python
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY pip.conf /etc/pip.conf
"""


class NoEngineError(Exception):
    """There is no Docker Engine, and none can be had; the message says why."""


def run(*command: str | Path, check: bool = True, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command and return what it printed. Errors: AssertionError with its output, if it fails and `check`."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]  # options of run
    assert not check or done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done  # type: ignore[no-any-return]  # the overload that options hide


class Engine:
    """The engine that answers, or one that `start` starts and `stop` ends, by its pid."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: str | None = None

    def start(self) -> None:
        """Errors: NoEngineError."""
        if _answers():
            return
        _install()
        self._folder = tempfile.mkdtemp(prefix="momus-dockerd-")
        with Path(self._folder, "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["dockerd", "--pidfile", f"{self._folder}/pid", "--exec-root", f"{self._folder}/exec"],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until = time.monotonic() + START_LIMIT_S
        while not _answers():
            if self._process.poll() is not None or time.monotonic() > until:
                said = Path(self._folder, "log").read_text().splitlines()[-3:]
                self.stop()
                raise NoEngineError(f"dockerd does not start here: {' / '.join(said)}")
            time.sleep(0.2)

    def stop(self) -> None:
        """End the dockerd that was started here; another one stays."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_LIMIT_S)
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _answers() -> bool:
    return shutil.which("docker") is not None and run("docker", "version", check=False).returncode == 0


def _install() -> None:
    if os.geteuid() != 0:
        raise NoEngineError("no Docker Engine answers, and only root can start one")
    if shutil.which("dockerd") and shutil.which("docker"):
        return
    if shutil.which("apt-get") is None:
        raise NoEngineError("no Docker Engine answers, and there is no apt-get to install one")
    run("apt-get", "-qq", "update", check=False)
    done = run("apt-get", "-qq", "install", "-y", "--no-install-recommends", *PACKAGES, check=False)
    if done.returncode != 0:
        raise NoEngineError(f"apt-get cannot install {PACKAGES[0]}: {done.stderr.strip().rpartition(chr(10))[2]}")


def base_image() -> str:
    """The name of the base image: python:3.11-slim, or the one made here where that cannot be pulled."""
    for name in (PULLED, MADE):
        if run("docker", "image", "inspect", name, check=False).returncode == 0:
            return name
    if run("docker", "pull", "--quiet", PULLED, check=False).returncode == 0:
        return PULLED
    _make_base()
    return MADE


def _make_base() -> None:
    """Debian's smallest system with Python 3.11, venv and pip; /etc/skel is in it, as in the real one."""
    if shutil.which("mmdebstrap") is None:
        run("apt-get", "-qq", "install", "-y", "--no-install-recommends", "mmdebstrap")
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "base.tar")
        packages = "--include=python3,python3-venv,python3-pip,ca-certificates"
        run("mmdebstrap", "--quiet", "--variant=minbase", packages, "bookworm", archive, _mirror())
        imported = run("docker", "import", archive).stdout.strip()
        archive.unlink()
        Path(folder, "Dockerfile").write_text(BASE.format(imported=imported))
        for name, text in (
            ("ca-certificates.crt", "/etc/ssl/certs/ca-certificates.crt"),
            ("pip.conf", "/etc/pip.conf"),
        ):
            Path(folder, name).write_bytes(Path(text).read_bytes() if Path(text).exists() else b"")
        run("docker", "build", "--quiet", "--network", "host", "--tag", MADE, folder)


def compose_command() -> list[str]:
    """What `docker compose`, version 2, is here.

    Debian 12 has version 1 only. Debian 13's package is one program that needs nothing else, so it is taken out of
    that, and kept in build/. Errors: AssertionError: it cannot be had.
    """
    if run("docker", "compose", "version", check=False).returncode == 0:
        return ["docker", "compose"]
    if not COMPOSE.exists():
        with tempfile.TemporaryDirectory() as folder:
            for name in ("lists/partial", "archives/partial"):
                Path(folder, name).mkdir(parents=True)
            source = f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {_mirror()} trixie main\n"
            Path(folder, "sources.list").write_text(source)
            settings = {
                "Dir::Etc::sourcelist": f"{folder}/sources.list",
                "Dir::Etc::sourceparts": "/dev/null",
                "Dir::State::lists": f"{folder}/lists",
                "Dir::Cache": folder,
                "APT::Sandbox::User": "root",
            }
            apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in settings.items())]
            run(*apt, "update")
            run(*apt, "download", "docker-compose", cwd=folder)
            (package,) = Path(folder).glob("docker-compose_*.deb")
            run("dpkg-deb", "--extract", package, f"{folder}/files")
            program = Path(folder, "files/usr/libexec/docker/cli-plugins/docker-compose")
            COMPOSE.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(program, COMPOSE)
    return [str(COMPOSE)]


def _mirror() -> str:
    """Where this machine gets Debian's packages from."""
    told = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").stdout.split()
    return next(uri for uri in told if "security" not in uri)
