"""Protobuf schemas: `format.py` has a schema compiled, `tree.py` reads how it is written, `written.py` writes it back.

What the compiler makes of it, descriptors, is what `rules.py` compares.
"""
