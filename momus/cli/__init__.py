"""The command line: a file or a folder for each group of commands, imported when it is asked for.

Owns `serve` and the table of all other commands (`main.py`). May import everything, and imports the broker's packages
and `client` within functions: `cli` in `main.py` has called `momus.launch.use_packages()` before a command runs. Start
reading at `COMMANDS` in `main.py`.
"""
