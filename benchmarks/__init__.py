"""Loads, peers and comparisons: every figure in the README can be made again from here."""
