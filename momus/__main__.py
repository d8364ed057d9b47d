"""`python -m momus` is the command line."""

from __future__ import annotations

from momus.cli.main import main

if __name__ == "__main__":
    main()
