"""One partition's log, made of the other rooms: append, read, replay, search, retain, compact.

Owns `Log` (`log.py`), how far all logs of a directory were synced (`synced_ends.py`), offsets by time (`lookup.py`),
headers from an offset down (`backwards.py`), and the commands that look a log through (`check.py`) or give up its
damaged end (`repair.py`). Imports all other rooms. Start reading at `Log` in `log.py`.
"""
