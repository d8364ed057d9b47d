"""What Spark reads out of the broker's logs: history, lag, audit, and the way out to another cluster."""
