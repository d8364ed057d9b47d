"""Registering a schema: `register.py` decides, with what the schema takes over, whether it is there, and its tags.

`completion.py` adds what comes from the version before and the config, `lookup.py` finds a content again, `tagging.py`
reads what changes in tags.
"""
