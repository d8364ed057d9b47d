"""Kafka's command-line tools by Kafka's names, for the container image: the options of Apache Kafka 4.4's, and the
lines that scripts and healthchecks look for. Start at main.py; each other file is one tool, or what several share."""
