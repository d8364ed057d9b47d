"""The way out to a real cluster: topics, records and group positions, copied, mapped, and proven equal."""
