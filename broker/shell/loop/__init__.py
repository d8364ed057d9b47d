"""What the event loop does between the turns of clients.

Start with steps.py, which gives jobs their part of the time. spin.py keeps the loop awake for the next request;
spare_clusters.py makes the next test's cluster in a pause of the clients.
"""
