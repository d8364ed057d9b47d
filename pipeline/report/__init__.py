"""The HTML report: figures computed by the other rooms, charts of them, and the page.

It imports transforms, tables and audit, and Matplotlib for the charts. Start at figures.py: everything on the page
comes from there; charts.py draws, page.py lays out, style.py is the CSS.
"""
