"""Makes the packages by which the binary comes along: a package of the platform for npm, a jar for Maven.

    python tools/binary_packages.py [FOLDER]      what `make binary` has left there (dist) becomes
        FOLDER/npm/momus-kit-VERSION.tgz                  the kit for Node
        FOLDER/npm/momus-kit-linux-x64-VERSION.tgz        installed beside the kit, from its file
        FOLDER/maven/momus-binary-VERSION-linux-x86_64.jar  a resource that the kit for JUnit unpacks once

Go takes the archive itself (clients/go/install).
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import names

NODE_CPU = {"x86_64": "x64", "aarch64": "arm64"}


def npm_package(archive: Path, folder: Path, machine: str) -> Path:
    """The package of the platform, packed. Its program is bin/momus."""
    found = names.read()
    name = f"{found.npm_package}-linux-{NODE_CPU[machine]}"
    place = folder.resolve() / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    with tarfile.open(archive) as file:
        file.extractall(place, filter="data")
    (unpacked,) = place.iterdir()
    unpacked.rename(place / "bin")
    about = {
        "name": name,
        "version": found.version,
        "description": f"The binary of momus for Linux {machine}: {(place / 'bin' / 'GLIBC').read_text().strip()}",
        "license": "Apache-2.0",
        "os": ["linux"],
        "cpu": [NODE_CPU[machine]],
        "libc": ["glibc"],
        "preferUnplugged": True,
        "files": ["bin"],
    }
    (place / "package.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    subprocess.run(["npm", "pack", "--silent", str(place)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / f"{name}-{found.version}.tgz"


def npm_kit(folder: Path) -> Path:
    """The kit itself, packed beside it; `npm pack` compiles it first."""
    kit = names.REPOSITORY / "clients" / "node"
    subprocess.run(["npm", "ci", "--silent"], cwd=kit, check=True)
    words = ["npm", "pack", "--silent", "--pack-destination", str(folder.resolve())]
    subprocess.run(words, cwd=kit, check=True, stdout=subprocess.DEVNULL)
    found = names.read()
    return folder / f"{found.npm_package}-{found.version}.tgz"


def maven_jar(archive: Path, folder: Path, machine: str) -> Path:
    """The jar with the archive and its checksum as resources."""
    folder.mkdir(parents=True, exist_ok=True)
    jar = folder / f"momus-binary-{names.read().version}-linux-{machine}.jar"
    with zipfile.ZipFile(jar, "w") as file:  # stored: the archive is packed already
        for suffix in ("", ".sha256"):
            file.write(f"{archive}{suffix}", f"momus/binary/linux-{machine}.tar.gz{suffix}")
    return jar


def main() -> None:
    """Make both, and name them."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else names.REPOSITORY / "dist"
    machine = platform.machine()
    archive = folder / f"momus-{names.read().version}-linux-{machine}.tar.gz"
    if not archive.exists():
        sys.exit(f"{archive} is not there: make binary")
    packages = folder / "npm"
    for made in (
        maven_jar(archive, folder / "maven", machine),
        npm_package(archive, packages, machine),
        npm_kit(packages),
    ):
        sys.stderr.write(f"{made}: {made.stat().st_size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main()
