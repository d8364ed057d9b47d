"""Kafka's wire protocol: messages declared once, a reference codec and a fast codec made from the same declaration."""
