"""The broker: coordinator, partitions, handlers, routing and the server around them."""
