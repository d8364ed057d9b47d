"""What the kits of other languages (clients/) start: a broker that ends with the test run.

Start at command.py, which is `momus kit`.
"""
