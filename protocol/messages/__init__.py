"""The declared messages, one module per API family; nothing is imported until it is asked for."""
