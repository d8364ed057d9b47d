"""Runs streaming queries over the views: micro-batches with state, retries of transient failures, stopping on signals.

It imports tables, output, source and schema, and no job. Start at follow.py, which the `--follow` forms of jobs share;
view_streams.py starts and watches queries, checkpoint.py reads their positions.
"""
