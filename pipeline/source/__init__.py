"""Reads segment files of a data directory into Spark: the data source `momus` and its planning.

It imports decode, schema and files, and no job. Start at data_source.py. segment_ranges.py reads one range of offsets,
stream_planner.py plans micro-batches and plan_file.py keeps the plan, changed_segments.py with segment_source.py serves
`compaction --follow`, and complete_offsets.py tells up to which offset all logs have been read.
"""
