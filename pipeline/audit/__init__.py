"""Did exactly-once hold? Checks over the logs, each a pure function from DataFrames to one of findings."""
