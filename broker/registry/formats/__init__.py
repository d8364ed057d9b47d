"""The three formats of schemas: whether one is a schema, its canonical form, and whether it fits an earlier one.

`checker.py` is the door: a Job in, a Checked out. Everything here may take long and meets hostile texts, so it runs in
a process of its own; the libraries are imported when a schema of their format first comes.
"""
