"""Which glibc the files of the binary need, and makes them need an older one where that changes nothing.

A program linked on Debian 12 asks for `hypot` of glibc 2.35, though the one of 2.2.5 computes the same: it differs in
how it reports errors to programs of the System V Interface Definition, and CPython is none. That one function would
keep the binary from RHEL 9 and Amazon Linux 2023 (2.34). Once a program is linked, patchelf can drop the version of a
function, but not the line that asks for that version; so that line is changed here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import VersionAuxiliary

GLIBC_NEWEST = (2, 36)  # Debian 12, the oldest that carries a Python that momus runs on
OF_COMPILER = ("libstdc++.so.6", "libgcc_s.so.1")
GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)(\.\d+)?")
# Functions of libm whose older version serves as well: name -> the version asked for, the version to ask for.
OLDER = {"hypot": ("GLIBC_2.35", "GLIBC_2.2.5")}


def programs(folder: Path) -> Iterator[Path]:
    """What the system's loader loads."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def glibc_of(root: Path, *, compilers: bool) -> tuple[int, int]:
    """The newest version of glibc whose symbols are asked for, by the libraries of the compiler or by all others.

    Errors: SystemExit where it is newer than GLIBC_NEWEST.
    """
    newest: dict[tuple[int, int], str] = {}
    for path in programs(root):
        if (path.name in OF_COMPILER) != compilers:
            continue
        with path.open("rb") as file:
            for _, _, line in lines_of(ELFFile(file)):
                if version := GLIBC.fullmatch(line.name):
                    newest.setdefault((int(version[1]), int(version[2])), str(path.relative_to(root)))
    found = max(newest)
    if found > GLIBC_NEWEST and not compilers:
        sys.exit(
            f"{newest[found]} asks for glibc {found[0]}.{found[1]}, newer than {GLIBC_NEWEST[0]}.{GLIBC_NEWEST[1]}"
        )
    return found


def functions_of(elf: ELFFile) -> dict[int, set[str]]:
    """The functions that a program takes from others, by the number of their version in it."""
    versions, symbols = elf.get_section_by_name(".gnu.version"), elf.get_section_by_name(".dynsym")
    found: dict[int, set[str]] = {}
    if versions is not None and symbols is not None:
        for at, symbol in enumerate(symbols.iter_symbols()):
            index = versions.get_symbol(at)["ndx"]
            if isinstance(index, int):
                found.setdefault(index, set()).add(symbol.name)
    return found


def lines_of(elf: ELFFile) -> Iterator[tuple[str, int, VersionAuxiliary]]:
    """The versions that a program asks libraries for: each library with the place of the line in the file."""
    section = elf.get_section_by_name(".gnu.version_r")
    if section is None:
        return
    at = section["sh_offset"]
    for library, lines in section.iter_versions():
        place = at + library["vn_aux"]
        for line in lines:
            yield library.name, place, line
            place += line["vna_next"]
        at += library["vn_next"]


def ask_for_older(path: Path) -> None:
    """Change the version that a program asks libm for, where each function of it is in OLDER. All else stays."""
    with path.open("r+b") as file:
        elf = ELFFile(file)
        functions = functions_of(elf)
        lines = [(place, line) for library, place, line in lines_of(elf) if library == "libm.so.6"]
        names = {line.name: line for _, line in lines}
        for place, line in lines:
            older = {OLDER.get(name, ("", "")) for name in functions.get(line["vna_other"], ())}
            if len(older) != 1:
                continue
            ((asked, wanted),) = older
            if line.name == asked and wanted in names:
                line.entry.vna_hash, line.entry.vna_name = names[wanted]["vna_hash"], names[wanted]["vna_name"]
                file.seek(place)
                file.write(elf.structs.Elf_Vernaux.build(line.entry))
