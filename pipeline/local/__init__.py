"""The engine for one machine: the transforms run on DuckDB over the decoder's Arrow batches, without Java.

There is one definition of each transform. They are written with Spark's words (functions, windows, DataFrames), which
`pipeline/engine.py` gives them; here are the words that they use, each a piece of DuckDB's SQL. columns.py has columns
and windows, functions.py the functions, frame.py the DataFrame, spark_sql.py reads conditions and types in Spark's
words, session.py holds the tables. Start reading at frame.py.
"""
