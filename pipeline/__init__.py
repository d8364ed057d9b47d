"""The broker's logs read by Spark, or by DuckDB on one machine: offset history, lag, the exactly-once audit, an
archive, and migration to Kafka.

Start reading at job.py, the entry point, then jobs/registry.py, the table of jobs. A job reads logs through tables.py
(the views `raw`, `offsets` and `transactions` as DataFrames), computes with the functions of transforms/ or audit/, and
writes through output.py. Transforms are written once, for both engines: engine.py, local/. Of the other packages the
pipeline imports only protocol/; group_offsets.py, connection_options.py, live/, migrate/ and demo/ import momus too,
for its client and broker, so that the bundle for spark-submit holds it. Inside, the rooms import in this order, each
only those before it:

    errors, broker_address, engine, spark_setup, files, schema, output_guard, output_lock, replacing, decode, source,
    transforms, connection_options, live, local, tables, input_check, session, output, streaming, group_offsets, audit,
    report, migrate, jobs, demo, job
"""
