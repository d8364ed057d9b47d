"""Functions of `protocol.codegen` that every start needs, kept as modules; do not edit them.

`python tools/keep_generated.py` writes them again; a test fails while they differ from their
declarations.
Imported by `codegen.Codec` only. The functions of all other messages are generated with their first use.
"""
