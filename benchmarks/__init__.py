"""Loads, peers and comparisons: every figure in docs/figures.md can be made again from here."""
