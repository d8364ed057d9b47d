"""`make client-table`: what clients of seven libraries do when they meet errors and faults; it writes docs/clients.md.

It is about clients, whose behaviour it records, and not about the broker's speed: so it is here and not in benchmarks/.
Start at __main__.py; cells.py says what is run, cell_run.py what a run is, page.py and notes.py what is written of it.
"""
