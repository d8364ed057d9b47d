"""Traces: a span for each request, sent to any OTLP address over HTTP. Loaded only with `--otel`.

Owns what a span says (`tracer.py`), what of records and replies is read for it (`contexts.py`), where spans go
(`address.py`) and the export (`export.py`). Start reading at `tracer.py`.
"""
