"""A proxy before a real cluster, as the kit has it: what its process is told, names for topics, a whole run of tests.

Begin with run.py, the plugin of `pytest --momus-upstream`.
"""
