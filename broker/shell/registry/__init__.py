"""The schema registry's shell: its HTTP (`endpoint.py`), its topic (`store.py`), the process that examines schemas.

`service.py` drives what broker/registry decides. Nothing here is imported in a process that serves no registry.
"""
