"""Random cases, each made from its seed alone: a module for each family of APIs, put together in `profiles.py`.

The state of a case is small on purpose (two topics, a group or two, one or two transactional ids), so that steps meet.
"""
