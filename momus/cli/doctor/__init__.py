"""`momus doctor ADDRESS`: why clients cannot use a broker, in sentences. `probe.py` asks, `findings.py` judges."""
