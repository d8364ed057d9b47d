"""Settings: Kafka's keys, their types, defaults and ranges, and the values in force.

Owns: the tables of keys (`config_defs.py` for topics and groups, the others for brokers), parsing
(`config_values.py`), feature levels (`features.py`) and `BrokerConfig` (`settings.py`), which the whole broker reads.
Imports no other room. Start reading at `settings.py`.
"""
