"""One HTML page of what all jobs found: figures, charts of them, and the page around."""
