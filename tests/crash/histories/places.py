"""Where the workers of a history write."""

TOPIC = "kept"
PARTITIONS = 3
