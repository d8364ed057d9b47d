"""`momus kit`: a broker for the kits of other languages, which ends when the test run that has started it does."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading

import click

from momus.launch import watch_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def kit(options: tuple[str, ...]) -> None:
    """Serve a broker for a test run in another language, until that ends.

    It is `momus serve`, and takes its options, with ports that the system chooses, a control endpoint, and data in
    memory, or in a folder that goes with it. It ends when its standard input is closed or the process that has started
    it is gone, also by kill -9. Ctrl-C in a terminal does not reach it: the run ends first, and uses it while it does.
    """
    from momus.cli.main import serve  # it has imported this file

    folder = tempfile.mkdtemp(prefix="momus-kit-")

    def end(*_: object) -> NoReturn:  # not by an exception: it would come in the middle of what starts
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)  # until the broker takes it
    threading.Thread(target=watch_parent, args=(os.getppid(),), name="parent", daemon=True).start()
    if os.name == "posix" and os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    try:
        first = ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--flush", "memory"]
        first += ["--data-dir", os.path.join(folder, "data")]
        serve.main(args=[*first, *options], prog_name="momus kit", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
