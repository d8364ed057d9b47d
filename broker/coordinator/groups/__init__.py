"""The kinds of groups: their members, states and what replay does to them."""
