"""`momus produce` and `momus consume`: records in and out of a terminal, with the words of kcat."""
