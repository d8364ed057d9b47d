"""Runs streaming queries over the views: micro-batches with state, retries of transient failures, stopping on signals.

It imports tables, output, source and schema, and no job. Start at follow.py, which the `--follow` forms of jobs share;
view_streams.py starts and watches queries, position_table.py keeps the position of `--follow`, and checkpoint.py reads
that of another process's query.
"""
