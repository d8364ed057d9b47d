"""Writes what a cluster holds as a file that fills another one: `momus dump`; and what such a file may say.

Start at dumping.py: it asks any Kafka. values.py has keys and values as people write them, layout.py the text.
"""
