"""The HTML report: figures computed by the other rooms, charts of them, and the page.

It imports transforms, tables and audit, and Matplotlib for the charts. Start at figures.py: everything on the page
comes from there (groups.py, share_progress.py and proof_records.py compute parts of it). charts.py draws, page.py lays
out with elements.py, limits.py says what cannot be known; style.py is the CSS, cursor.py the script, digits.py writes
numbers.
"""
