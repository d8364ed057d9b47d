"""Runs protoc within this process, the one that examines schemas: files in, a descriptor set or its complaints out."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import google.type
import grpc_tools
from grpc_tools import protoc

from broker.registry.jobs import SchemaFaultError

if TYPE_CHECKING:
    from collections.abc import Callable

OWN: Final = Path(grpc_tools.__path__[0], "_proto")  # Google's
COMMON: Final = [f"google/type={each}" for each in google.type.__path__]  # money, date and others, of Google too
WARNING: Final = re.compile(r"WARNING: |[IW]\d{4} ")
ERROR_LETTERS: Final = 1000


def compiled(files: dict[str, str], main: str) -> bytes:
    """A FileDescriptorSet of one of the files and of all that it imports, each after what it needs.

    Errors: SchemaFaultError, with line and column.
    """
    with tempfile.TemporaryDirectory(prefix="momus-schema-") as folder:
        for name, text in files.items():
            file = Path(folder, name)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            except (OSError, UnicodeEncodeError) as error:
                raise SchemaFaultError(f"the reference {name[:100]!r} cannot be imported: {error}") from None
        out, said = Path(folder, ".set"), Path(folder, ".errors")
        places = [f"-I{each}" for each in (folder, OWN, *COMMON)]
        words = ["protoc", *places, "--include_imports", f"--descriptor_set_out={out}", main]
        if _quietly(lambda: protoc.main(words), said):
            text = said.read_text(errors="replace").replace(f"{folder}/", "").replace(f"{main}:", "line ")
            lines = [line for line in text.splitlines() if line and not WARNING.match(line)]
            raise SchemaFaultError("; ".join(lines)[:ERROR_LETTERS])
        return out.read_bytes()


def _quietly(call: Callable[[], int], said: Path) -> int:
    """What a call returns; what it writes to standard error, by whatever library, goes to a file."""
    kept = os.dup(2)
    sink = os.open(said, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.dup2(sink, 2)
        return call()
    finally:
        os.dup2(kept, 2)
        os.close(sink)
        os.close(kept)
