"""`momus topic alter`: partitions and settings of a topic that is there."""
