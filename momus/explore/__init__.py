"""Explores a test: runs it once for each thing that a healthy cluster may do to a right client.

Start at happenings.py, the table of what may happen. classes.py finds the requests of a run that are alike, plan.py
makes schedules of both, schedule.py is their text. watch.py stands between a run and its clusters; suite.py runs
tests in workers (worker.py), program.py programs of any language; findings.py and report.py say what was found.
"""
