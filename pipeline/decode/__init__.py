"""Bytes of segments to columns: record batches, records, and what the coordinators wrote into them."""
