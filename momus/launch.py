"""Where the broker's packages are, and the program of the subprocess that runs it.

In the repository `broker`, `protocol`, `storage` and `pipeline` are top-level; in the wheel they are in
`momus/_packages`, which is on no sys.path. Only a process that is all ours (the command line, the
broker's subprocess) puts them on its path.

Run as a file, under `python -I`, with one argument: JSON of `paths` (put after the interpreter's own) and
`run`, the function that serves as "module:function", with its arguments in `serve`.
Isolated mode ignores PYTHONPATH, the user's site-packages and the working directory, so that whatever a project has
lying about cannot change the broker; `paths` brings back the folders that dependencies may be in.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading

PARENT_CHECK_S = 0.5
PROGRAM = os.path.abspath(__file__)
_HERE = os.path.dirname(PROGRAM)


def packages_folder() -> str:
    """The folder that holds the packages `broker`, `protocol`, `storage` and `pipeline`."""
    bundled = os.path.join(_HERE, "_packages")
    return bundled if os.path.isdir(bundled) else os.path.dirname(_HERE)


def use_packages() -> None:
    """Make the broker's packages importable, before anything of the same name."""
    folder = packages_folder()
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)


def build() -> str:
    """What runs when this interpreter serves: "pure Python", or "compiled by mypyc 2.4.1" and the like.

    A compiled wheel holds the sources too, and an interpreter for which it holds no extensions runs these.
    """
    from importlib.machinery import EXTENSION_SUFFIXES  # 0.3 ms

    folder = packages_folder()
    if not any(os.path.exists(os.path.join(folder, "broker", "broker" + suffix)) for suffix in EXTENSION_SUFFIXES):
        return "pure Python"
    with open(os.path.join(folder, "COMPILED"), encoding="utf-8") as note:
        return f"compiled by {note.read().strip()}"


def dependency_paths() -> list[str]:
    """The folders besides the interpreter's own that may hold momus' dependencies.

    `pip install --user` and `--target` put them where isolated mode does not look. A plain folder of the
    user's project is left out on purpose: only installers' folders, and the one momus itself was installed
    into.
    """
    installed = [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")]
    beside = os.path.dirname(_HERE)
    return installed if beside in installed else [*installed, beside]


def watch_parent(parent_pid: int) -> None:
    """Stop as SIGTERM does when the process that started us has ended, however it ended.

    Its end of our standard input closes with it, unless a child that it forked holds that too: so ask for the
    parent as well, where the system tells.
    """
    if os.name == "posix":
        import select  # not on every system

        while os.getppid() == parent_pid:
            readable, _, _ = select.select([0], [], [], PARENT_CHECK_S)
            if readable and not os.read(0, 4096):
                break
    else:
        while os.read(0, 4096):
            continue
    signal.raise_signal(signal.SIGTERM)


def main() -> None:
    """Serve until told to stop; clean up after a parent that no longer can."""
    import json  # 1 ms

    options = json.loads(sys.argv[1])
    # Isolated mode ran site before us, so what is here already keeps its place.
    sys.path += [path for path in options["paths"] if path not in sys.path]
    use_packages()
    parent_pid, temporary = options["parent_pid"], options["temporary"]
    threading.Thread(target=watch_parent, args=(parent_pid,), name="parent", daemon=True).start()
    module, _, name = options["run"].partition(":")
    code = getattr(importlib.import_module(module), name)(**options["serve"])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it may come twice, and we are on our way
    if os.getppid() != parent_pid:
        # The process that made this folder was killed and cannot remove it.
        import shutil  # 2 ms

        shutil.rmtree(temporary, ignore_errors=True)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
