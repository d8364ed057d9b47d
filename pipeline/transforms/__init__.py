"""What jobs compute, as pure functions from DataFrame to DataFrame: commits, lag, compaction, missing offsets.

They import pyspark and protocol and read no files; the column lists at the top of each module say what rows they need.
Start at commits.py: which commits count, and when.
"""
