"""The exactly-once audit: checks over the logs, each a pure function from DataFrames to a DataFrame of findings.

It imports transforms, and tables only in directory.py and share_input.py. Start at audit.py, which runs all checks and
turns their candidates into findings and doubts; findings.py lists the kinds of findings. sequences.py, endings.py,
commits.py and members.py hold the checks, shares.py those of share groups (share_states.py walks through the records of
a share partition, share_input.py reads them), log_coverage.py what of the logs was there to check, incremental.py the
audit of new rows.
"""
