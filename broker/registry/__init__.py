"""The schema registry: Confluent's REST API over the records of the topic `_schemas`. It knows no socket and no log.

`state.py` replays the records and is asked; `registering/`, `deletion.py` and `settings.py` decide which records a
request writes; `reading.py` has the requests that write nothing; `routes.py` is the table of paths. What a schema means
is judged in `formats/`, which runs in a process of its own (shell/registry/).
"""
