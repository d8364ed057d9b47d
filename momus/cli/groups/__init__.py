"""`momus group seek` and `momus group delete`: what a group has committed moves, or goes."""
