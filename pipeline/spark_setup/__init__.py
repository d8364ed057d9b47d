"""Everything a Spark session needs on this machine before it starts: a Java, the connector's jars, their certificates.

It imports only errors. pipeline/session.py is its one caller apart from `momus pipeline jars`. Start at java.py.
"""
