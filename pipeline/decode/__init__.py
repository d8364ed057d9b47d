"""Decodes the bytes of segments into Arrow columns: record batches, records, and the coordinators' keys and values.

It imports protocol, pipeline/schema.py, numpy and Arrow, and never Spark. Start at columnar.py: it decodes a chunk of
batches with numpy and leaves irregular chunks to plain.py, the reference decoder that it must equal. batches.py finds
the batches of a file, frame.py the fields of all their records.
"""
