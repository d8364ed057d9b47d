"""Hatchling's hook that puts the extensions of tools/compiled.py into the wheel.

    HATCH_BUILD_HOOK_ENABLE_CUSTOM=1 pip wheel --no-deps .

Off unless that variable is set (pyproject.toml): `pip install .` of a checkout stays pure Python. The sources are in
the wheel as well, for tracebacks and for an interpreter that cannot load the extensions.

Not hatch-mypyc: it compiles in the checkout, which is not pure any more then, and it knows one source folder only.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileHook(BuildHookInterface[Any]):
    """Compiles in a temporary folder, which stays until the wheel is written."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Names the extensions, their places in the wheel, and that the wheel is for this interpreter alone."""
        if version == "editable":
            return  # runs from the checkout
        self.folder = TemporaryDirectory(prefix="momus-compiled-")
        folder = Path(self.folder.name).resolve()
        program = Path(self.root) / "tools" / "compiled.py"
        subprocess.run([sys.executable, str(program), "--for-wheel", str(folder)], check=True)
        extensions = [path for path in folder.rglob("*") if path.suffix in (".so", ".pyd")]
        for path in (*extensions, folder / "COMPILED"):
            build_data["force_include"][str(path)] = f"momus/_packages/{path.relative_to(folder).as_posix()}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what was compiled."""
        if version != "editable":
            self.folder.cleanup()
