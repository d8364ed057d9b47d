"""Random comparison with Apache Kafka: the same requests to both, and every answer that differs is explained or an
error.

Start in `__main__.py` (the command line) or `play.py` (one case). A case is a list of steps, plain values that JSON can
hold; `generate/` makes them from a seed.
"""
