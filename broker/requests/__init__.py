"""The requests that clients send again and again: one file an API, with one rule and two codecs.

The rule is `decide`: it alone reads groups, topics and producers. The general codec is the declared message, by the
functions `asks` and `response`. The other one serves a repeat of an earlier request from its bytes (repeated.py). Both
fill the same Ask, and call the same rule. Start with offset_commit.py.
"""
